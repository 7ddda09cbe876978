"""Every kernel compiles for both architectures into the instructions it is meant to become, without a GPU."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dsv4chat.kernels.cute import (
    arrange,
    attending,
    builder,
    catalogue,
    connection,
    experts,
    indexing,
    products,
    routing,
    rows,
    sharing,
)

pytestmark = pytest.mark.skipif(
    builder.dsl_version() is None, reason="nvidia-cutlass-dsl is not installed (it is for Linux only)"
)

SHARED = (
    "import os, json; os.environ['CUTE_DSL_ARCH'] = 'sm_90a'\n"
    "from dsv4chat.kernels.cute import gemv, units, down_kernel, connection_kernel, router_kernel, one_row\n"
    "from dsv4chat.kernels.cute import attention_kernel, attention_merge_kernel, attention_staging\n"
    "from dsv4chat.kernels.cute import index_choose_kernel, index_scores_kernel, prefetching, rows_kernel\n"
)


def disassembler() -> Path:
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    return next(path for folder in folders for path in folder.glob("*/bin/nvdisasm"))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("architecture", catalogue.ARCHITECTURES)
def test_every_kernel_becomes_the_instructions_it_is_meant_to_be(architecture, tmp_path):
    progress = []
    build = builder.build(
        architecture, lambda done, total, name: progress.append((done, total)), root=tmp_path
    )
    assert build.complete()
    assert progress == [(done + 1, len(catalogue.names())) for done in range(len(catalogue.names()))]
    kernels = {}
    for name in build.kernels():
        check_launcher_data(build.read(name))
        command = [str(disassembler()), "-c", str(build.folder / f"{name}.cubin")]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        kernels[name] = opcodes(text)
    for name, code in kernels.items():
        # Without it a programmatic launch would read what the kernel before it has not written yet.
        assert "ACQBULK" in code, name
        if catalogue.family(name) in catalogue.PRODUCTS:
            check_product(name, code, architecture)
    check_attention(kernels["attention_partial"])


def check_launcher_data(kernel):
    assert kernel.cubin.startswith(b"\x7fELF")
    assert kernel.entry.encode() in kernel.cubin
    assert kernel.parameters
    assert set(kernel.parameters) <= {4, 8}


def check_product(name, code, architecture):
    """16 bytes at a time past the registers, through shared memory, to the tensor cores; nothing spilled."""
    assert any(op.startswith("LDGSTS") and ".128" in op for op in code), name
    assert any(op.startswith("LDS.128") for op in code), name
    assert any(op.startswith("HMMA.16816.F32") for op in code), name
    if "ragged" not in name:
        assert not [op for op in code if op.startswith(("LDL", "STL"))], name
    if "nvfp4" in name:
        # A unit is 16 words of 8 codes a lane: 64 conversions of two where there is such an instruction, else
        # masks and multiplications.
        to_four, to_eight = (
            sum(f"F2FP.F16.{kind}.UNPACK_B" in op for op in code) for kind in ("E2M1", "E4M3")
        )
        assert (to_four, to_eight) == ((64, 0) if architecture == "sm_100a" else (0, 0)), name


def check_attention(code):
    assert any(op.startswith("LDSM.16.MT88.4") for op in code)
    # Scores of two pieces of 32 channels, sums of 16 rows: the rest are turns of loops.
    assert sum(op.startswith("HMMA.16816.F32") for op in code) == 8 + 8
    assert not [op for op in code if op.startswith(("LDL", "STL"))]


def opcodes(text: str) -> list[str]:
    lines = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)", text, re.MULTILINE)
    assert lines
    return lines


def test_host_and_kernels_agree_on_sizes():
    """What the host reserves and counts is what the kernels use."""
    code = SHARED + (
        "print(json.dumps({"
        "'threads': gemv.THREADS, 'warps': gemv.WARPS, 'stage': units.STAGE_BYTES, 'sums': gemv.SUMS_BYTES,"
        "'stages': {f.name: f.stages for f in units.FORMATS},"
        "'blocks': {f.name: f.blocks for f in units.FORMATS},"
        "'unit': {f.name: f.unit for f in units.FORMATS},"
        "'chunk': {f.name: f.columns for f in units.FORMATS},"
        "'down': down_kernel.STAGES, 'picks': [down_kernel.MOST_PICKS, down_kernel.PICKS_BYTES],"
        "'few': one_row.FEW * one_row.TILE_BYTES, 'many': one_row.MANY * one_row.TILE_BYTES,"
        "'nvfp4': one_row.MANY * one_row.TILE_BYTES,"
        "'units': one_row.MOST_UNITS, 'zeros': one_row.ZEROS_BYTES,"
        "'pick_bits': down_kernel.PICK_BITS, 'attention': attention_kernel.SHARED_BYTES,"
        "'merge': attention_merge_kernel.QUARTERS * attention_staging.D // 4,"
        "'connection': [connection_kernel.PARTS, connection_kernel.THREADS, connection_kernel.SHARED_BYTES],"
        "'gates': 4 * connection_kernel.STREAMS * (1 + connection_kernel.STREAMS),"
        "'columns': connection_kernel.COLUMNS, 'line': prefetching.LINE_BYTES,"
        "'scores': [index_scores_kernel.THREADS, index_scores_kernel.SHARED_BYTES],"
        "'choose': [index_choose_kernel.THREADS, index_choose_kernel.SHARED_BYTES],"
        "'rows': [rows_kernel.THREADS, rows_kernel.SHARED_BYTES],"
        "'router': [router_kernel.THREADS, router_kernel.SHARED_BYTES]}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == {
        "threads": products.THREADS,
        "warps": sharing.WARPS,
        "stage": products.STAGE_BYTES,
        "sums": products.SUMS_BYTES,
        "stages": products.STAGES,
        "blocks": products.BLOCKS,
        "unit": arrange.UNIT,
        "chunk": arrange.CHUNK,
        "down": experts.STAGES_DOWN,
        "picks": [experts.MOST_PICKS, experts.PICKS_BYTES],
        "few": products.sums_bytes("fp8", products.MOST_UNITS + 1),
        "many": products.sums_bytes("fp8", products.MOST_UNITS),
        "nvfp4": products.sums_bytes("nvfp4", products.MOST_UNITS + 1),
        "units": products.MOST_UNITS,
        "zeros": products.ZEROS_BYTES,
        "pick_bits": experts.PICK_BITS,
        "attention": attending.SHARED_BYTES,
        "merge": attending.MERGE_THREADS,
        "connection": [connection.PARTS, connection.THREADS, connection.SHARED_BYTES],
        "gates": connection.GATES_BYTES,
        "columns": connection.COLUMNS,
        "line": products.LINE_BYTES,
        "scores": [indexing.THREADS, indexing.SCORES_SHARED],
        "choose": [indexing.CHOOSE_THREADS, indexing.CHOOSE_SHARED],
        "rows": [rows.THREADS, rows.SHARED_BYTES],
        "router": [routing.THREADS, routing.SHARED_BYTES],
    }
