"""`dsv4chat kernels`: list and build without a GPU, refuse to check without one."""

import json

import pytest
import torch
from click.testing import CliRunner

from dsv4chat.cli import main
from dsv4chat.kernels.cute import builder, catalogue, store


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def run(*arguments):
    return CliRunner().invoke(main, ["kernels", *arguments])


def put(cache, architecture, names):
    with store.new_build(architecture, "4.8.1", cache) as folder:
        for name in names:
            (folder / f"{name}.cubin").write_bytes(b"code")
            (folder / f"{name}.json").write_text('{"entry": "e", "parameters": [8]}')


def test_an_empty_cache_says_how_to_fill_it(cache):
    result = run("list")
    assert result.exit_code == 0
    assert str(cache) in result.output
    assert "dsv4chat kernels build" in result.output
    assert all(name in result.output for name in catalogue.names())


def test_the_list_says_what_is_built_for_what(cache):
    put(cache, "sm_90a", catalogue.names())
    put(cache, "sm_100a", ["linear_fp8"])
    lines = run("list").output.splitlines()
    assert any(line.startswith("sm_90a") and "complete" in line for line in lines)
    assert any(line.startswith("sm_100a") and "incomplete" in line for line in lines)
    by_name = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert sorted(by_name["linear_fp8"]) == ["sm_100a", "sm_90a"]
    assert by_name["linear_bf16"] == ["sm_90a"]


def test_the_list_as_json(cache):
    put(cache, "sm_90a", ["linear_fp8", "router"])
    found = json.loads(run("list", "--json").output)
    assert found["kernels"] == catalogue.names()
    (build,) = found["builds"]
    assert (build["architecture"], build["dsl"]) == ("sm_90a", "4.8.1")
    assert build["kernels"] == ["linear_fp8", "router"]


def test_without_the_compiler_build_says_what_to_install(cache, monkeypatch):
    monkeypatch.setattr(builder, "dsl_version", lambda: None)
    result = run("build")
    assert result.exit_code == 1
    assert "dsv4chat[gpu]" in result.output


def test_an_unknown_architecture_is_refused(cache):
    result = run("build", "--arch", "sm_80")
    assert result.exit_code == 1
    assert "sm_90a and sm_100a" in result.output


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_checking_needs_a_gpu(cache):
    result = run("check")
    assert result.exit_code == 1
    assert "no CUDA device" in result.output


@pytest.mark.skipif(builder.dsl_version() is None, reason="nvidia-cutlass-dsl is not installed")
def test_a_build_that_fails_says_why_and_leaves_nothing(cache):
    with pytest.raises(builder.BuildError, match="did not compile for sm_90a"):
        builder.build("sm_90a", only=["no_such_kernel"])
    assert store.builds() == []
