"""The caches of conversations, asked about through the engine's process: saved, brought back, measured."""

import pytest

from dsv4chat.engine_process import EngineDied, EngineFailed, EngineProcess
from dsv4chat.runtime.protocol import Finished, Load, SamplingParams
from tests.support.engines import save_random

SOME = SamplingParams(temperature=0, max_tokens=6, ignore_eos=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_random(tmp_path_factory.mktemp("model"), text=True)


async def loaded(folder, tmp_path, **more):
    engine = EngineProcess(log_folder=tmp_path / "logs", threads=1)
    await engine.start()
    async for _ in engine.load(Load(model=str(folder), max_context=600, **more)):
        pass
    return engine


async def turn(engine, ids, conversation):
    """(sampled ids, the end) of a turn."""
    items = [item async for item in engine.generate(ids, SOME, conversation=conversation)]
    assert isinstance(items[-1], Finished)
    return [item.id for item in items if hasattr(item, "logprob")], items[-1]


async def test_a_saved_conversation_is_warm_in_a_new_process(folder, tmp_path):
    cache = str(tmp_path / "cache")
    prompt = list(range(3, 103))
    engine = await loaded(folder, tmp_path, cache_folder=cache)
    said, first = await turn(engine, prompt, "7")
    assert (first.reused, first.prefilled, first.restored) == (0, 100, "none")
    assert first.room == 600 - 106
    saved = await engine.caches.save("7")
    assert saved.files == 1
    assert saved.bytes > 0
    assert (await engine.caches.save("7")).files == 0  # nothing new
    (figures,) = await engine.caches.list()
    assert (figures.conversation, figures.tokens, figures.branches) == ("7", 106, 1)
    assert figures.disk_bytes == saved.bytes
    assert figures.live_bytes > 0
    await engine.close()

    other = await loaded(folder, tmp_path, cache_folder=cache)
    back = await other.caches.resume("7")
    assert (back.tokens, back.notices) == (106, [])
    follow = [*prompt, *said, 5, 6, 7]
    assert await other.caches.measure("7", follow) == 106
    again, second = await turn(other, follow, "7")
    assert (second.reused, second.prefilled, second.notices) == (106, 3, [])
    cold, _ = await turn(other, follow, "another")
    assert again == cold
    await other.close()


async def test_a_damaged_saved_cache_is_told_and_read_again(folder, tmp_path):
    cache = tmp_path / "cache"
    prompt = list(range(3, 53))
    engine = await loaded(folder, tmp_path, cache_folder=str(cache))
    await turn(engine, prompt, "7")
    await engine.caches.save("7")
    await engine.close()
    (file,) = cache.rglob("*.safetensors")
    raw = bytearray(file.read_bytes())
    raw[-100] ^= 1
    file.write_bytes(raw)
    other = await loaded(folder, tmp_path, cache_folder=str(cache))
    _, end = await turn(other, [*prompt, 9], "7")
    assert (end.reused, end.prefilled) == (0, 51)
    assert any("damaged" in notice for notice in end.notices)
    await other.close()


async def test_without_a_folder_a_save_is_refused_with_a_sentence_and_the_engine_goes_on(folder, tmp_path):
    engine = await loaded(folder, tmp_path)
    await turn(engine, [3, 4, 5], "7")
    with pytest.raises(EngineFailed, match="the engine was given no folder"):
        await engine.caches.save("7")
    assert await engine.caches.measure("7", [3, 4, 9]) == 2
    await engine.close()
    with pytest.raises(EngineDied, match="closed"):
        await engine.caches.save("7")


async def test_a_child_without_a_model_refuses(tmp_path):
    async with EngineProcess(log_folder=tmp_path, threads=1) as engine:
        with pytest.raises(EngineFailed, match="No model is loaded yet"):
            await engine.caches.save("7")
