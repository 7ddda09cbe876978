"""The cache of built kernels: what is found, what is not, and what a failed build leaves."""

import json

import pytest

from dsv4chat.kernels.cute import builder, catalogue, store


def build(root, architecture="sm_90a", version="1.0", names=None, text=b"code"):
    with store.new_build(architecture, version, root) as folder:
        for name in catalogue.names() if names is None else names:
            (folder / f"{name}.cubin").write_bytes(text)
            (folder / f"{name}.json").write_text(json.dumps({"entry": f"{name}_entry", "parameters": [8, 4]}))


def test_a_build_is_found_and_read(tmp_path):
    build(tmp_path)
    found = store.find("sm_90a", tmp_path)
    assert found is not None
    kernel = found.read("linear_fp8")
    assert (kernel.cubin, kernel.entry, kernel.parameters) == (b"code", "linear_fp8_entry", (8, 4))
    assert store.find("sm_100a", tmp_path) is None


def test_an_incomplete_build_is_listed_but_not_used(tmp_path):
    build(tmp_path, names=["linear_fp8"])
    assert [one.kernels() for one in store.builds(tmp_path)] == [["linear_fp8"]]
    assert store.find("sm_90a", tmp_path) is None


@pytest.mark.parametrize("damage", ["empty code", "no json", "half a json", "another json"])
def test_a_damaged_build_is_listed_without_the_kernel_and_not_used(tmp_path, damage):
    build(tmp_path)
    (found,) = store.builds(tmp_path)
    code, about = (found.folder / f"connection.{ending}" for ending in ("cubin", "json"))
    if damage == "empty code":
        code.write_bytes(b"")
    elif damage == "no json":
        about.unlink()
    else:
        about.write_text("{" if damage == "half a json" else "[1]")
    assert set(catalogue.names()) - set(found.kernels()) == {"connection"}
    assert not found.complete()
    assert store.find("sm_90a", tmp_path) is None


def test_a_build_of_other_source_is_not_used(tmp_path, monkeypatch):
    build(tmp_path)
    monkeypatch.setattr(store, "source_key", lambda: "another")
    assert store.find("sm_90a", tmp_path) is None


def test_a_build_that_fails_leaves_the_old_one_and_nothing_else(tmp_path):
    build(tmp_path, text=b"old")

    def interrupted():
        with store.new_build("sm_90a", "1.0", tmp_path) as folder:
            (folder / "linear_fp8.cubin").write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert store.find("sm_90a", tmp_path).read("linear_fp8").cubin == b"old"
    assert [path.name for path in (tmp_path / catalogue.source_key()).iterdir()] == ["sm_90a-dsl1.0"]


def test_a_second_build_takes_the_place_of_the_first(tmp_path):
    build(tmp_path, text=b"old")
    build(tmp_path, text=b"new")
    assert store.find("sm_90a", tmp_path).read("down_bf16").cubin == b"new"
    assert len(list((tmp_path / catalogue.source_key()).iterdir())) == 1


def test_the_key_follows_the_text_of_every_source(tmp_path, monkeypatch):
    key = catalogue.source_key()
    for name in catalogue.SOURCES:
        copy = tmp_path / name
        copy.write_bytes((catalogue.Path(catalogue.__file__).with_name(name)).read_bytes())
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "catalogue.py"))
    catalogue.source_key.cache_clear()
    try:
        assert catalogue.source_key() == key
        for name in catalogue.SOURCES:
            text = (tmp_path / name).read_bytes()
            (tmp_path / name).write_bytes(text + b"\n")
            catalogue.source_key.cache_clear()
            assert catalogue.source_key() != key
            (tmp_path / name).write_bytes(text)
    finally:
        catalogue.source_key.cache_clear()


def test_without_the_compiler_building_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "dsl_version", lambda: None)
    with pytest.raises(builder.BuildError, match="pip install"):
        builder.build("sm_90a", root=tmp_path)


def test_an_unknown_architecture_is_refused(tmp_path):
    with pytest.raises(builder.BuildError, match="sm_90a and sm_100a"):
        builder.build("sm_80", root=tmp_path)


@pytest.mark.parametrize(
    ("capability", "name"), [((9, 0), "sm_90a"), ((10, 0), "sm_100a"), ((8, 0), None), ((12, 0), None)]
)
def test_a_gpu_gets_the_code_of_its_own_generation(capability, name):
    assert catalogue.architecture(capability) == name


def test_every_name_has_its_family():
    for name in catalogue.names():
        assert name == catalogue.family(name) or name.startswith(catalogue.family(name) + "_")
    assert len(set(catalogue.names())) == len(catalogue.names())
