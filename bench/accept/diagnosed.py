"""Runs `slowpath diagnose --json` and prints its result as Markdown; used by the acceptance runs of this directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scratch import scratch

SLOWPATH = os.environ.get("SLOWPATH", "target/release/slowpath")
CHROMIUM = [
    "/usr/lib/chromium/chromium", "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--user-data-dir={tmp}/profile", "{url}",
]
FIREFOX = ["/usr/lib/firefox-esr/firefox-esr", "--headless", "--no-remote", "--profile", "{tmp}", "{url}"]
PYTHON = [
    "/usr/bin/python3", "-c",
    "import asyncio, concurrent.futures, csv, ctypes, decimal, difflib, email.mime.multipart, http.server, json, "
    "logging.config, multiprocessing, pdb, sqlite3, ssl, tarfile, unittest.mock, urllib.request, "
    "xml.etree.ElementTree, zipfile",
]


@dataclass
class Case:
    """One diagnosis: what is launched, and under which conditions."""

    title: str
    command: list[str]
    ready: str = "exit"
    options: list[str] = field(default_factory=list)


def diagnose(case: Case, runs: int) -> dict[str, Any]:
    """Runs the case as an ordinary user (nobody) and returns the printed object."""
    with scratch("diagnosed", 0o755) as base:
        command = [
            SLOWPATH, "diagnose", "--json", "--quiet", "--cold", "--user", "nobody", "--ready", case.ready,
            "--blocks", str(runs), "--max-time", "2h", "--env", "HOME={tmp}", "--env", "TMPDIR={tmp}",
            "-o", str(base / "out"), *case.options, "--", *case.command,
        ]
        print(f"--- {case.title}", file=sys.stderr, flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{case.title}: slowpath ended with {done.returncode}\n{done.stdout}")
        keep = os.environ.get("SLOWPATH_KEEP")
        if keep:
            shutil.copytree(base / "out", Path(keep) / case.title.replace(" ", "-").replace("/", "-"), dirs_exist_ok=True)
        return dict(json.loads(done.stdout))


def span(quantity: dict[str, Any] | None, scale: float = 1.0, digits: int = 0) -> str:
    """A quantity with its interval."""
    if quantity is None:
        return "-"
    value = f"{quantity['value'] * scale:.{digits}f}"
    if quantity["low"] is None:
        return value
    return f"{value} ({quantity['low'] * scale:.{digits}f} to {quantity['high'] * scale:.{digits}f})"


def table(case: Case, diagnosis: dict[str, Any]) -> str:
    """The arms of a diagnosis as a Markdown table, with notes."""
    launch = diagnosis["launch"]
    verdicts = {verdict["arm"]: verdict for verdict in diagnosis["verdicts"]}
    shares = {share["arm"]: share["share"] for share in diagnosis["share_of_gap_removed"]}
    lines = [
        f"## {case.title}", "",
        f"`slowpath diagnose {' '.join(case.options)} --ready {case.ready} --blocks {launch['blocks']} --user nobody`, "
        f"seed {launch['seed']}", "",
        "| arm | median ms (95 %) | change ms (95 %) | predicted ms | share of the gap % | read MB | n | discarded "
        "| verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for arm in launch["arms"]:
        verdict = verdicts.get(arm["name"], {})
        count = sum(sample is not None for sample in arm["samples_ms"])
        lines.append(
            f"| {arm['name']}: {arm['title']} | {span(arm['median'])} | {span(verdict.get('measured'))} "
            f"| {span(verdict.get('predicted'))} | {span(shares.get(arm['name']), 100)} "
            f"| {span({**arm['bytes_read'], 'low': None}, 1e-6, 1) if arm['bytes_read'] else '-'} | {count} "
            f"| {arm['discarded'] + arm['failed']} | {verdict.get('outcome', '')} |"
        )
    lines.append("")
    for finding in diagnosis["findings"]:
        lines.append(f"- {finding['name']}: {finding['title']}; cost {span(finding['cost'], 1, 1)} ms")
    lines += [f"- {note}" for note in diagnosis["notes"]]
    lost = sum(diagnosis["losses"].values())
    lines.append(f"- events lost while recording: {lost}")
    samples = "; ".join(
        f"{arm['name']} {[None if s is None else round(s) for s in arm['samples_ms']]}" for arm in launch["arms"]
    )
    lines += ["", "<details><summary>all launches, ms by block</summary>", "", samples, "", "</details>", ""]
    return "\n".join(lines)


def arm_low(diagnosis: dict[str, Any], arm: str) -> float:
    """Lower end of the share of the cold-warm gap that `arm` removed; minus infinity where there is none."""
    for share in diagnosis["share_of_gap_removed"]:
        if share["arm"] == arm and share["share"]["low"] is not None:
            return float(share["share"]["low"])
    return float("-inf")


def relative_fall_low(diagnosis: dict[str, Any], arm: str) -> float:
    """Lower end of the fall of the cold time by `arm`, as a share of the cold median."""
    cold = next(a for a in diagnosis["launch"]["arms"] if a["role"] == "baseline")["median"]["value"]
    verdict = next(v for v in diagnosis["verdicts"] if v["arm"] == arm)
    high = verdict["measured"]["high"]
    return float("-inf") if high is None else -float(high) / float(cold)
