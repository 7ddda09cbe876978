"""The tables of the history, one SQL script for each version; version n is `MIGRATIONS[:n]` run in order.

A conversation is a tree of messages: `message.parent_id` points up, a branch is a sibling, and
`conversation.active_leaf` says which path is shown. A message whose `deleted` is set is hidden with all below
it, which carries the same time; `shown` is when a message was last the active leaf. What the model produced
is kept with its answer: `generation` has one row of figures, `token_block` the sampled tokens in the order of
their making, a row for each write, so that a growing answer only ever appends (the blobs: see `figures.py`).
`message_text` is the full-text index: rowid = message id, text as `words.segment` cuts it.
`draft.slot` is the conversation, or 0 for a new one.

A script that has been released is never edited; a change is a new script at the end.
"""

APPLICATION_ID = 0x64763463  # "dv4c": tells our files from other SQLite databases

_FIRST = """
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL DEFAULT '',
    title_by TEXT NOT NULL DEFAULT 'none' CHECK (title_by IN ('none', 'text', 'model', 'person')),
    created REAL NOT NULL,
    updated REAL NOT NULL,
    deleted REAL,
    active_leaf INTEGER REFERENCES message (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    system TEXT NOT NULL DEFAULT '',
    thinking INTEGER NOT NULL DEFAULT 1,
    effort TEXT,
    sampling TEXT NOT NULL DEFAULT '{}',
    tools TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX conversation_updated ON conversation (updated DESC) WHERE deleted IS NULL;

CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
    parent_id INTEGER REFERENCES message (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    content TEXT NOT NULL DEFAULT '',
    reasoning TEXT,
    state TEXT NOT NULL DEFAULT 'complete'
        CHECK (state IN ('complete', 'writing', 'stopped', 'interrupted', 'length', 'failed')),
    error TEXT,
    tool_call_id TEXT,
    thinking INTEGER,
    effort TEXT,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    writer TEXT
);
CREATE INDEX message_conversation ON message (conversation_id, id);
CREATE INDEX message_parent ON message (parent_id, id);
CREATE INDEX message_writing ON message (state) WHERE state = 'writing';

CREATE TABLE tool_call (
    message_id INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    valid INTEGER NOT NULL DEFAULT 1,
    error TEXT,
    approval TEXT CHECK (approval IN ('once', 'always', 'never')),
    PRIMARY KEY (message_id, position)
) WITHOUT ROWID;

CREATE TABLE generation (
    message_id INTEGER PRIMARY KEY REFERENCES message (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    tokenizer TEXT NOT NULL,
    profile TEXT NOT NULL,
    sampling TEXT NOT NULL DEFAULT '{}',
    layers INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER,
    reused INTEGER,
    prefilled INTEGER,
    tokens INTEGER,
    ttft_ms REAL,
    prefill_ms REAL,
    first_decode_ms REAL,
    reasoning_tokens INTEGER,
    reasoning_ms REAL,
    tokens_per_second REAL,
    stop_id INTEGER
);

CREATE TABLE token_block (
    message_id INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    count INTEGER NOT NULL,
    ids BLOB NOT NULL,
    kinds BLOB NOT NULL,
    milliseconds BLOB NOT NULL,
    logprobs BLOB NOT NULL,
    residual BLOB NOT NULL,
    alternatives BLOB,
    PRIMARY KEY (message_id, start)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE message_text USING fts5 (content, reasoning, tokenize = 'unicode61 remove_diacritics 2');
"""

MESSAGE_TEXT = """\
CREATE VIRTUAL TABLE message_text USING fts5 (
    content, reasoning, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3'
);"""

# Deleted messages can come back; branches remember where one was; approvals; drafts; a full-text index that
# also answers the first letters of a word at once.
_SECOND = f"""
ALTER TABLE message ADD COLUMN deleted REAL;
ALTER TABLE message ADD COLUMN shown REAL;
DROP INDEX message_conversation;
CREATE INDEX message_living ON message (conversation_id, id) WHERE deleted IS NULL;
CREATE INDEX message_tree ON message (conversation_id, parent_id, id);
CREATE INDEX message_deleted ON message (deleted) WHERE deleted IS NOT NULL;

CREATE TABLE approval (
    tool TEXT NOT NULL,
    conversation_id INTEGER REFERENCES conversation (id) ON DELETE CASCADE,
    decision TEXT NOT NULL CHECK (decision IN ('always', 'never')),
    created REAL NOT NULL
);
CREATE UNIQUE INDEX approval_tool ON approval (tool, coalesce(conversation_id, 0));
CREATE INDEX approval_conversation ON approval (conversation_id);

CREATE TABLE draft (
    slot INTEGER PRIMARY KEY,
    conversation_id INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    updated REAL NOT NULL
);

ALTER TABLE message_text RENAME TO message_text_before;
{MESSAGE_TEXT}
INSERT INTO message_text (rowid, content, reasoning)
    SELECT rowid, content, reasoning FROM message_text_before;
DROP TABLE message_text_before;
"""

# Where a conversation's prompt begins, when its oldest turns are left out.
_THIRD = """
ALTER TABLE conversation ADD COLUMN start INTEGER REFERENCES message (id) ON DELETE SET NULL
    DEFERRABLE INITIALLY DEFERRED;
"""

# Which conversation was open when the program was left: one row at most, NULL for a new one.
_FOURTH = """
CREATE TABLE left_open (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    conversation_id INTEGER
);
"""

MIGRATIONS: tuple[str, ...] = (_FIRST, _SECOND, _THIRD, _FOURTH)
VERSION = len(MIGRATIONS)
