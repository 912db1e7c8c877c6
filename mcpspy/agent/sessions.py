"""The recorded sessions, live ones first, then the newest, and the client runs that they belong to."""

from datetime import UTC, datetime

from mcpspy.agent.answers import LARGEST, Answer, Scrubber, cursor_at, facts, place_of, size_of
from mcpspy.agent.captures import AgentCaptures
from mcpspy.browse.library import ListedCapture
from mcpspy.conversation.counts import COUNTED

_MOST = 50  # sessions per answer


def list_sessions(
    captures: AgentCaptures,
    *,
    server: str = "",
    client: str = "",
    problems: bool = False,
    run: str = "",
    cursor: str = "",
) -> Answer:
    """Return the matching sessions, with counts."""
    captures.look(count=True)
    runs = {entry.path: name for name, group in captures.runs() for entry in group}
    entries = captures.several(run) if run else captures.entries
    wanted = [it for it in entries if _fits(captures.scrubber, it, server.lower(), client.lower(), problems=problems)]
    wanted.sort(key=lambda it: (not it.live, -it.started, it.path))
    key = ("list_sessions", server, client, problems, run)
    first = place_of(cursor, key)
    sessions: list[Answer] = []
    answer = facts(
        total=len(wanted),
        unread=[captures.scrubber.text(f"{name}: {why}", 280) for name, why in list(captures.refused.items())[:3]],
        note="" if captures.complete else "some captures are not counted yet; ask again for all counts",
    )
    room = LARGEST - size_of(answer) - 200
    for entry in wanted[first : first + _MOST]:
        told = describe(captures, entry, runs.get(entry.path, ""))
        room -= size_of(told) + 1
        if room < 0:
            break
        sessions.append(told)
    answer["sessions"] = sessions
    end = first + len(sessions)
    if end < len(wanted):
        answer["next"] = cursor_at(key, end)
    return answer


def describe(captures: AgentCaptures, entry: ListedCapture, run: str = "") -> Answer:
    """Return one session as a few facts."""
    counts, found = entry.counts, entry.found
    counted = entry.size <= COUNTED and (entry.finished or entry.live)
    text = captures.scrubber.text
    return facts(
        session=captures.name(entry),
        server=text(entry.header.name, 80),
        client=text(counts.client, 80),
        started=datetime.fromtimestamp(entry.started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        live=entry.live or None,
        transport=entry.header.transport,
        run=run,
        requests=counts.exchanges if counted else None,
        failed=counts.failed if counted else None,
        findings={severity: number for severity, number in found.items() if number} if counted else None,
        bytes=entry.size,
        imported=text(entry.header.imported.form, 80) if entry.header.imported else None,
    )


def _fits(scrubber: Scrubber, entry: ListedCapture, server: str, client: str, *, problems: bool) -> bool:
    if server:  # compared with what answers may show, so that nobody can guess a secret by its beginning
        command = " ".join(scrubber.argv(entry.header.argv)).lower()
        if server not in scrubber.text(entry.header.name).lower() and server not in command:
            return False
    if client and client not in scrubber.text(entry.counts.client).lower():
        return False
    uncounted = entry.size > COUNTED
    return not problems or uncounted or bool(entry.counts.failed or entry.found["error"] or entry.found["warning"])
