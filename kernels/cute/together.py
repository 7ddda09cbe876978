"""Single instructions that the lanes of a warp, or the blocks of a cluster, carry out together."""

from typing import Any

from cutlass import Int32

from dsv4chat.kernels.cute.ptx import asm


def lanes_like_this(value: Any) -> Any:
    """A bit for each lane of the warp with the same Int32."""
    return asm("match.any.sync.b32 $0, $1, 0xffffffff;", [Int32], [value], volatile=True)


def publish() -> None:
    """What this thread wrote is there for all that the GPU does after it."""
    asm("fence.acq_rel.gpu;", [], [], volatile=True)


def cluster_arrive() -> None:
    """Of a cluster's barrier; what was written before it is seen after `cluster_wait`."""
    asm("barrier.cluster.arrive.release.aligned;", [], [], volatile=True)


def cluster_wait() -> None:
    asm("barrier.cluster.wait.acquire.aligned;", [], [], volatile=True)


def expect_bytes(barrier: Any, count: int) -> None:
    """Begin a barrier (8 bytes of shared memory) that opens when `count` bytes came by `send_f32`.

    By one thread, before the cluster's barrier.
    """
    asm(
        "mbarrier.init.shared.b64 [$0], 1; fence.mbarrier_init.release.cluster;\n"
        f"{{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [$0], {count}; }}",
        [],
        [barrier],
        volatile=True,
    )


def await_bytes(barrier: Any) -> None:
    """Wait until a barrier of `expect_bytes` opens; what was sent is there then."""
    asm(
        "{ .reg .pred p;\n"
        "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$0], 0;\n"
        "@!p bra again; }",
        [],
        [barrier],
        volatile=True,
    )


def send_f32(address: Any, block: Any, value: Any, barrier: Any) -> None:
    """A Float32 to the place `address` has in the shared memory of a block of the cluster; its barrier counts
    the bytes.
    """
    asm(
        "{ .reg .b32 to, at; mapa.shared::cluster.u32 to, $0, $1; mapa.shared::cluster.u32 at, $3, $1;\n"
        ".reg .b32 v; mov.b32 v, $2;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], v, [at]; }",
        [],
        [address, block, value, barrier],
        volatile=True,
    )


def warp_max(value: Any) -> Any:
    """The largest Int32 of a warp's lanes, for all of them."""
    return asm("redux.sync.max.s32 $0, $1, 0xffffffff;", [Int32], [value], volatile=True)


def warp_min(value: Any) -> Any:
    return asm("redux.sync.min.s32 $0, $1, 0xffffffff;", [Int32], [value], volatile=True)


def ballot(value: Any) -> Any:
    """A bit for each lane of the warp whose Int32 is not 0."""
    return asm(
        "{ .reg .pred p; setp.ne.s32 p, $1, 0; vote.sync.ballot.b32 $0, p, 0xffffffff; }",
        [Int32],
        [value],
        volatile=True,
    )
