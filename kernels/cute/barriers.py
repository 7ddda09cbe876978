"""Barriers of a block and of a cluster, and what arrives in shared memory by itself: single instructions."""

from typing import Any

from cutlass import Int32

from dsv4chat.kernels.cute.ptx import asm


def wait_with(value: Any) -> None:
    """The block's barrier, which a thread reaches only when it has this Int32."""
    asm(
        "{ .reg .pred p, q; setp.ne.s32 p, $0, 0; barrier.cta.red.or.pred.aligned q, 0, p; }",
        [],
        [value],
        volatile=True,
    )


def cluster_arrive() -> None:
    """Of a cluster's barrier: after `cluster_wait` the others' barriers of `expect_bytes` are there. It waits
    for no memory.
    """
    asm("barrier.cluster.arrive.relaxed.aligned;", [], [], volatile=True)


def cluster_wait() -> None:
    asm("barrier.cluster.wait.acquire.aligned;", [], [], volatile=True)


def expect_bytes(barrier: Any, count: int) -> None:
    """Begin a barrier (8 bytes of shared memory) that opens when `count` bytes came by `send_f32` or
    `copy_bulk`.

    By one thread; before the cluster's barrier, if others send.
    """
    asm(
        "mbarrier.init.shared.b64 [$0], 1; fence.mbarrier_init.release.cluster;\n"
        "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [$0], $1; }",
        [],
        [barrier, Int32(count)],
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


def copy_bulk(to: Any, address: Any, count: Any, barrier: Any) -> None:
    """Bytes of global memory on their way into the block's shared memory; the barrier counts them.

    All multiples of 16.
    """
    asm(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
        [],
        [to, address, count, barrier],
        volatile=True,
    )
