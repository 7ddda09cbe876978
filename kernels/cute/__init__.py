"""Kernels of a decode step in CuTe DSL, one source for Hopper (sm_90a) and Blackwell (sm_100a).

Built once into a cache (`dsv4chat kernels build`), on any machine that has `nvidia-cutlass-dsl`, with or
without a GPU; loaded from there with the CUDA driver alone. Run and checked on Hopper; Blackwell's code
compiles, and has never run.

    from dsv4chat.kernels.cute.operations import operations

    ops = operations("auto", device, say=print)     "torch" | "cute" | "auto"; ops.name: what became of it

Made once at load, from `Packed` matrices as they are stored; called in a step, eagerly or while a CUDA graph
is captured. x is bfloat16, half or float32 with unit stride along a row, 16-byte aligned, 1 to 8 rows at
best (more are done in turns); results are float32, in `out` when given, else allocated.

    ops.linear([packed, ...])(x, out=None)
        (n, columns) -> (n, sum of the parts' rows), one launch a part
    ops.pair([packed], [packed])(x)
        two results (n, rows), the second matrix in bfloat16, one launch; None where there is no kernel
    ops.grouped(packed)(x, out=None)
        packed (groups, rows, columns): (n, groups * columns) -> (n, groups * rows), one launch
    ops.experts(gate_up, down, limit)(x, ids, weights, add=None, out=None)
        gate_up (e, 2 * inner, d), w1 above w3; down (e, d, inner); ids (n, picks) int32, weights (n, picks)
        float32: (n, d) -> (n, d), add + the weighted sum of the chosen experts, two launches
    ops.experts(gate_up, down, limit)(x, add=None)
        matrices without the leading axis and no ids: the shared expert
    ops.router_and_shared(router, shared)(x)
        the router's logits and the shared expert's hidden layer, one launch; None where there is no kernel
    ops.connection(weights)(streams, output, gates, peak)
        what lies between two sublayers: streams, the next input, gates, max |X|; one launch
    ops.router(bias, table, picks, scaling)(logits, tokens)
        ids (n, picks) int32 and weights (n, picks) float32, one launch
    ops.attention(sizes, rows)(query, rotation, position, ring, blocks, chosen)
        one token over window and compressed rows, two launches
    ops.start(...), ops.cache_rows(...), ops.index(...), ops.sampling(...)
        how a step begins, what a token leaves in the cache, which blocks it attends to, how a step ends

Their exact meaning is that of the PyTorch versions: `kernels.step_operations`, `step_rows`, `step_index`.

Layouts: NVFP4 and FP8 codes in groups of eight rows (`kernels.grouping`) where rows and columns come in whole
groups and units, on Hopper those of NVFP4 with their bits in another order (`spread_order`): both changed in
place at load (`Packed.arranged`), else copied. NVFP4 block scales are copied once into the order the lanes
want (`arrange.quad_scales`, 1/9 of the weight), FP8 tile scales to float32; a caller with no other use for
`Packed.scales` may drop it. MXFP4 and float32 matrices have no
kernel: convert MXFP4 at load (`NVFP4Weight.from_mxfp4`, exact), or they run on PyTorch.

Every kernel waits for the one before it only where it needs its results (programmatic dependent launch),
which is safe beside PyTorch's own kernels in one stream. After one that `settles` the next need not wait for
what came before that one: callers say so with `settled`. Kernels are loaded when `operations` returns;
nothing is loaded or synchronised afterwards.

`dsv4chat kernels check` compares products, experts, connections, router and attention with float64 and times
them; cache rows and index are compared by `pytest -m gpu`.
"""
