"""The views over the tables of a recording, each declared once: name, what a row is, SQL.

A view uses the tables and the views before it. Times in views are milliseconds; `pid` and `start` name a process.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..sources.recording import PAGE_BYTES


@dataclass(frozen=True, slots=True)
class View:
    """One view."""

    name: str
    about: str
    sql: str


VIEWS: tuple[View, ...] = (
    View(
        "paths",
        "a file: device, inode, path",
        "SELECT dev, ino, min(path) AS path FROM files GROUP BY dev, ino",
    ),
    View(
        "processes",
        "a process that ran a program: the last one",
        "SELECT *, CASE WHEN regexp_matches(filename, '^([A-Za-z]:)?[/\\\\]')"
        " THEN regexp_extract(filename, '[^/\\\\]*$') ELSE filename END AS name FROM"
        " (SELECT pid, start, arg_max(filename, ts) AS filename, arg_max(command_line, ts) AS command_line,"
        " min(ts) AS first_exec FROM execs GROUP BY pid, start)",
    ),
    View(
        "functions",
        "a frame of code: its function, its file, and whether it is the kernel's",
        "SELECT f.id AS frame, coalesce(s.function, p.path, '[' || f.kind || ']') AS function,"
        " coalesce(p.path, '[' || f.kind || ']') AS file, f.kind FROM frames f"
        " LEFT JOIN (SELECT frame, first(function ORDER BY level) AS function FROM symbols GROUP BY frame) s"
        " ON s.frame = f.id LEFT JOIN paths p ON p.dev = f.dev AND p.ino = f.ino",
    ),
    View(
        "innermost",
        "a call stack: its innermost function",
        "SELECT st.id AS stack, fn.function, fn.file, fn.kind FROM stacks st JOIN functions fn ON fn.frame = st.frame",
    ),
    View(
        "stack_functions",
        "a frame of a call stack: depth 0 is the innermost",
        "WITH RECURSIVE walk(stack, place, depth) AS (SELECT id, id, 0 FROM stacks UNION ALL"
        " SELECT w.stack, s.parent, w.depth + 1 FROM walk w JOIN stacks s ON s.id = w.place"
        " WHERE s.parent IS NOT NULL AND s.parent < s.id AND w.depth < 2048)"
        " SELECT w.stack, w.depth, fn.function, fn.file, fn.kind FROM walk w JOIN stacks s ON s.id = w.place"
        " JOIN functions fn ON fn.frame = s.frame",
    ),
    View(
        "launches",
        "the launch: from the release of exec to ready; null where the recording holds no launch",
        "SELECT command, ready_when, outcome, (ready - released) / 1e6 AS time_to_ready_ms,"
        " (ended - started) / 1e6 AS recorded_ms FROM recording",
    ),
    View(
        "faults_by_function",
        "page faults of a process in a function, innermost frame; null without stacks of faults",
        "SELECT p.name AS process, f.pid, i.function, count(*) AS faults,"
        " count(*) FILTER (f.kind = 'major') AS major, sum(f.duration) / 1e6 AS ms"
        " FROM faults f LEFT JOIN innermost i ON i.stack = f.stack"
        " LEFT JOIN processes p ON p.pid = f.pid AND p.start = f.start GROUP BY ALL",
    ),
    View(
        "cpu_by_function",
        "CPU samples of a process in a function, innermost frame, and their share of all",
        "SELECT p.name AS process, c.pid, i.function, count(*) AS samples,"
        " count(*) / sum(count(*)) OVER () AS share FROM cpu_samples c"
        " LEFT JOIN innermost i ON i.stack = c.stack"
        " LEFT JOIN processes p ON p.pid = c.pid AND p.start = c.start GROUP BY p.name, c.pid, i.function",
    ),
    View(
        "reads_by_file",
        "read calls of a file: how many, bytes, time, mean size",
        "SELECT coalesce(p.path, r.dev || ':' || r.ino) AS path, count(*) AS reads,"
        " sum(greatest(r.result, 0)) AS bytes, sum(r.duration) / 1e6 AS ms, avg(greatest(r.result, 0)) AS mean_bytes"
        " FROM reads r LEFT JOIN paths p ON p.dev = r.dev AND p.ino = r.ino"
        " GROUP BY coalesce(p.path, r.dev || ':' || r.ino)",
    ),
    View(
        "storage_by_file",
        "what was read of a file from storage into the page cache, and on whose behalf",
        "SELECT coalesce(p.path, c.dev || ':' || c.ino) AS path, c.asker, count(*) AS insertions,"
        f" sum(c.pages) * {PAGE_BYTES} AS bytes FROM page_cache c LEFT JOIN paths p ON p.dev = c.dev AND p.ino = c.ino"
        " WHERE c.op = 'add' AND c.asker <> 'write' GROUP BY coalesce(p.path, c.dev || ':' || c.ino), c.asker",
    ),
    View(
        "off_cpu_by_thread",
        "waits of a thread by reason: how many, time, and how much of it it could have run",
        "SELECT p.name AS process, o.pid, o.tid, o.reason, count(*) AS waits, sum(o.duration) / 1e6 AS ms,"
        " sum(o.runnable) / 1e6 AS runnable_ms FROM off_cpu o"
        " LEFT JOIN processes p ON p.pid = o.pid AND p.start = o.start GROUP BY ALL",
    ),
    View(
        "allocations_by_function",
        "memory that mmap, mremap and brk added (calls that added none are left out), by the innermost function of the"
        " call's stack",
        # As MemoryCall::growth in crates/tables: `length` of mremap is the new size, not what it added.
        "SELECT p.name AS process, m.pid, i.function, count(*) AS calls, sum(m.added) AS bytes,"
        " sum(m.duration) / 1e6 AS ms FROM (SELECT *, CASE WHEN call IN ('mmap', 'brk') THEN length"
        " WHEN call = 'mremap' THEN greatest(length, old_length) - old_length END AS added"
        " FROM memory_calls WHERE result = 0 AND NOT shrinks) m LEFT JOIN innermost i ON i.stack = m.stack"
        " LEFT JOIN processes p ON p.pid = m.pid AND p.start = m.start WHERE m.added > 0 GROUP BY ALL",
    ),
    View(
        "denied_opens",
        "a path that a process was refused, and how often",
        "SELECT p.name AS process, o.pid, o.path, o.result, count(*) AS times FROM opens o"
        " LEFT JOIN processes p ON p.pid = o.pid AND p.start = o.start WHERE o.result IN (-1, -13, -30) GROUP BY ALL",
    ),
)
