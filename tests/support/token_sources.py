"""Engines for tests of what stands above them: one with a script, one in this process."""

from dsv4chat.runtime.protocol import Finished, Prefill, SamplingParams, Token


class ScriptedSource:
    """Says given ids, whatever it is asked. `fail` is raised after them instead of an end."""

    def __init__(self, tokenizer, ids, *, reason="stop", stop_id=None, fail=None):
        self.tokenizer = tokenizer
        self.ids = list(ids)
        self.reason = reason
        self.stop_id = stop_id
        self.fail = fail
        self.requests = []
        self.stopped = False

    def stop(self):
        self.stopped = True

    async def generate(self, ids, sampling, *, conversation="default", boundaries=(), alternatives=0):
        self.requests.append((list(ids), sampling, conversation, list(boundaries), alternatives))
        yield Prefill(turn=1, done=len(ids), total=len(ids), reused=0)
        decoder = self.tokenizer.decoder()
        said = 0
        for token in self.ids:
            if self.stopped:
                break
            said += 1
            yield Token(
                turn=1,
                id=token,
                text=decoder.push(token),
                logprob=-0.5,
                milliseconds=10.0,
                residual=[1.0, 2.0],
            )
        if self.fail is not None:
            raise self.fail
        yield Finished(
            turn=1,
            reason="stopped" if self.stopped else self.reason,
            prefilled=len(ids),
            reused=0,
            tokens=said,
            ttft_ms=30.0,
            prefill_ms=20.0,
            first_decode_ms=10.0,
            tokens_per_second=100.0,
            stop_id=self.stop_id,
            tail=decoder.flush(),
        )


class LocalSource:
    """A real engine, in this process and thread."""

    def __init__(self, engine):
        self.engine = engine
        self.stopped = False

    def stop(self):
        self.stopped = True

    async def generate(self, ids, sampling=None, *, conversation="default", boundaries=(), alternatives=0):
        self.stopped = False
        tokens = self.engine.generate(
            ids,
            sampling or SamplingParams(),
            conversation=conversation,
            boundaries=boundaries,
            alternatives=alternatives,
            should_stop=lambda: self.stopped,
        )
        for token in tokens:
            yield Token(
                turn=1,
                id=token.id,
                text=token.text,
                logprob=token.logprob,
                milliseconds=token.milliseconds,
                residual=token.residual,
            )
        report = self.engine.last_turn
        yield Finished(
            turn=1,
            reason=report.reason,
            prefilled=report.prefilled,
            reused=report.reused,
            tokens=report.tokens,
            ttft_ms=report.ttft_ms,
            prefill_ms=report.prefill_ms,
            first_decode_ms=report.first_decode_ms,
            tokens_per_second=report.tokens_per_second,
            stop_id=report.stop_id,
            tail=report.tail,
        )
