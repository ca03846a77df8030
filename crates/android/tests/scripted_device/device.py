"""The scripted device: its files, and what its commands print, as Android 13 does."""

import shlex
from dataclasses import dataclass

from art_files import dm, odex, vdex
from perfetto_trace import launch

DEX_BYTES = 8_400_000
CHROME, WEBVIEW = "com.android.chrome", "com.google.android.webview"
TRICHROME = "/data/app/~~t==/com.google.android.trichromelibrary_1-u==/base.apk"
PATHS = {CHROME: "/data/app/~~c==/com.android.chrome-d==/base.apk", WEBVIEW: "/data/app/~~w==/com.google.android.webview-x==/base.apk"}
SHELL, SYSTEM, CHROME_UID, SHARED = 2000, 1000, 10123, 50123
LABEL = "u:object_r:apk_data_file:s0"


@dataclass
class File:
    """A file or directory."""

    mode: int
    data: bytes = b""
    is_directory: bool = False
    gid: int = SYSTEM

    def st_mode(self) -> int:
        """As stat(2) has it."""
        return self.mode | (0o040000 if self.is_directory else 0o100000)


class Device:
    """One device."""

    def __init__(self, state: str) -> None:
        self.files: dict[str, File] = {}
        self.status_of: dict[str, tuple[str, str]] = {}
        self.running: set[str] = set()
        self.launches = 0
        self.tracing: dict[str, str] = {}
        self.shown = ""
        for path, mode in (("/", 0o755), ("/data", 0o771), ("/data/app", 0o771)):
            self.files[path] = File(mode, is_directory=True)
        for apk in (*PATHS.values(), TRICHROME):
            self.directory_of(apk)
            self.files[apk] = File(0o644, b"PK\x03\x04")
            self.compiled(apk, "speed", "install", 0o644, 0o644)
        chrome = PATHS[CHROME]
        if state == "healthy":
            self.compiled(chrome, "speed-profile", "install-dm", 0o644, 0o644)
            self.files[chrome.replace(".apk", ".dm")] = File(0o644, dm())
        else:
            self.compiled(chrome, "speed-profile", "bg-dexopt", 0o640, 0o644 if state == "partly" else 0o640)

    def directory_of(self, apk: str) -> None:
        """All directories of an app; those of compiled code can be searched and not listed."""
        directory = apk.rsplit("/", 1)[0]
        self.files[directory.rsplit("/", 1)[0]] = File(0o771, is_directory=True)
        self.files[directory] = File(0o755, is_directory=True)
        for name in ("/oat", "/oat/arm64"):
            self.files[directory + name] = File(0o771, is_directory=True)

    def compiled(self, apk: str, status: str, reason: str, odex_mode: int, vdex_mode: int) -> None:
        """Compiles an APK."""
        at = apk.rsplit("/", 1)[0] + "/oat/arm64/base"
        self.files[at + ".odex"] = File(odex_mode, odex(status, reason), gid=SHARED)
        self.files[at + ".vdex"] = File(vdex_mode, vdex(), gid=SHARED)
        self.status_of[apk] = (status, reason)

    def status(self, path: str) -> File | None:
        """A file that adb's shell can look up."""
        return self.files.get(path) if self.may_look_up(path) else None

    def may_look_up(self, path: str) -> bool:
        """Whether the shell may search every directory above."""
        above, parts = "", path.strip("/").split("/")
        for part in parts[:-1]:
            above += "/" + part
            if above in self.files and not self.files[above].mode & 1:
                return False
        return True

    def may(self, path: str, bit: int) -> bool:
        """Whether the shell, which owns nothing here, may do that."""
        return bool(self.files[path].mode & bit)

    def run(self, command: str, failure: str, stdin: bytes = b"") -> tuple[bytes, bytes, int]:
        """What a command prints on standard output and error, and its status."""
        words = shlex.split(command)
        match words:
            case ["am", "force-stop", name]:
                self.running.discard(name)
                return b"", b"", 0
            case ["am", "start", "-W", *rest]:
                return self.start(rest, failure)
            case ["cmd", "package", "resolve-activity", "--brief", "-c", "android.intent.category.LAUNCHER", name]:
                if name not in PATHS:
                    return b"No activity found\n", b"", 0
                return f"priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n{name}/org.chromium.Main\n".encode(), b"", 0
            case ["input", "keyevent", "KEYCODE_HOME"]:
                return b"", b"", 0
            case ["perfetto", "--background", "--txt", "-c", "-", "-o", path]:
                if failure == "no-perfetto" or b"linux.ftrace" not in stdin:
                    return b"", b"Failed to connect to the traced service\n", 1
                pid = str(4000 + len(self.tracing))
                self.tracing[pid] = path
                return f"{pid}\n".encode(), b"", 0
            case ["kill", "-TERM", pid] if pid in self.tracing:
                data = self.traced()
                self.files[self.tracing.pop(pid)] = File(0o600 if failure == "no-pull" else 0o644, data[:-9] if failure == "cut-trace" else data)
                return b"", b"", 0
            case ["kill", *_]:
                return b"", b"kill: No such process\n", 1
            case ["cat", path] if path in self.files:
                return self.files[path].data, b"", 0
            case ["rm", "-f", path]:
                self.files.pop(path, None)
                return b"", b"", 0
            case ["id"]:
                return b"uid=2000(shell) gid=2000(shell) groups=2000(shell),1007(log) context=u:r:shell:s0\n", b"", 0
            case ["getprop"]:
                return self.properties().encode(), b"", 0
            case ["ps", *_]:
                return self.processes().encode(), b"", 0
            case ["dumpsys", "package", "dexopt"]:
                if failure == "no-dexopt":
                    return b"", b"Permission Denial: can't dump package from from pid=1, uid=2000\n", 1
                return self.dexopt().encode(), b"", 0
            case ["dumpsys", "webviewupdate"]:
                return f"  Current WebView package (name, version): ({WEBVIEW}, 120.0)\n".encode(), b"", 0
            case ["dumpsys", "package", name]:
                return self.package(name).encode(), b"", 0
            case ["pm", "path", name]:
                found = PATHS.get(name)
                return (f"package:{found}\n".encode(), b"", 0) if found else (b"", b"", 1)
            case ["ls", "-landZ", *paths]:
                return self.listed(paths, failure)
            case ["unzip", "-l", apk]:
                return self.members(apk).encode(), b"", 0
            case ["head", "-c", size, path]:
                if not self.may(path, 4):
                    return b"", f"head: {path}: Permission denied\n".encode(), 1
                return self.files[path].data[: int(size)], b"", 0
            case ["cmd", "package", "compile", *rest]:
                return self.compile(rest, failure)
        return b"", f"/system/bin/sh: {words[0]}: inaccessible or not found\n".encode(), 127

    def start(self, rest: list[str], failure: str) -> tuple[bytes, bytes, int]:
        """`am start -W`: an activity by its name, or the package behind an address."""
        name = rest[rest.index("-n") + 1].split("/")[0] if "-n" in rest else rest[-1]
        if failure == "no-activity" or name not in PATHS:
            return f"Starting: Intent {{ pkg={name} }}\nError type 3\nError: Activity class {{{name}}} does not exist.\n".encode(), b"", 1
        self.launches += 1
        self.shown = name
        state, base = ("COLD", 500) if name not in self.running else ("WARM", 200) if "-f" in rest else ("HOT", 60)
        self.running.add(name)
        total = base + (40 if self.is_unreadable(name) else 0) + self.launches % 5
        return (
            f"Starting: Intent {{ cmp={name}/org.chromium.Main }}\nStatus: ok\nLaunchState: {state}\nActivity: {name}/org.chromium.Main\n"
            f"TotalTime: {total}\nWaitTime: {total + 9}\nComplete\n"
        ).encode(), b"", 0

    def is_unreadable(self, name: str) -> bool:
        """Whether isolated processes of the package have no compiled code."""
        vdex_path = PATHS[name].rsplit("/", 1)[0] + "/oat/arm64/base.vdex"
        return not self.files[vdex_path].mode & 4

    def traced(self) -> bytes:
        """What Perfetto saw: a renderer that has no compiled code verifies it."""
        if not self.shown:
            return launch("com.example.other", 0)
        return launch(self.shown, 200 if self.is_unreadable(self.shown) else 0, 400 + self.launches % 5)

    def compile(self, rest: list[str], failure: str) -> tuple[bytes, bytes, int]:
        """`-m speed -f PACKAGE`, `-r shared PACKAGE`: without the profile, so readable for everybody."""
        apk = PATHS.get(rest[-1])
        if failure == "no-compile" or apk is None or rest[:-1] not in (["-m", "speed", "-f"], ["-r", "shared"]):
            return b"Failure: package " + rest[-1].encode() + b" could not be compiled\n", b"", 1
        self.compiled(apk, "speed", "cmdline" if rest[0] == "-m" else "shared", 0o644, 0o644)
        return b"Success\n", b"", 0

    def listed(self, paths: list[str], failure: str) -> tuple[bytes, bytes, int]:
        """`ls -landZ` of toybox."""
        out, err = "", ""
        for path in paths:
            file = self.files.get(path)
            if file is None:
                err += f"ls: {path}: No such file or directory\n"
            elif not self.may_look_up(path) or (failure == "denied" and "/oat/" in path):
                err += f"ls: {path}: Permission denied\n"
            else:
                bits = "".join(
                    letter if file.mode & bit else "-" for letter, bit in zip("rwxrwxrwx", (256, 128, 64, 32, 16, 8, 4, 2, 1), strict=True)
                )
                kind = "d" if file.is_directory else "-"
                size = 4096 if file.is_directory else len(file.data)
                out += f"{kind}{bits} 1 {SYSTEM} {file.gid} {LABEL} {size} 2024-01-01 10:00 {path}\n"
        return out.encode(), err.encode(), 1 if err else 0

    def dexopt(self) -> str:
        """`dumpsys package dexopt` of Android 13."""
        text = "Dexopt state:\n"
        for name, apk in (*PATHS.items(), ("com.google.android.trichromelibrary_1", TRICHROME)):
            status, reason = self.status_of[apk]
            text += f"  [{name}]\n    path: {apk}\n      arm64: [status={status}] [reason={reason}]\n"
        return text

    def package(self, name: str) -> str:
        """`dumpsys package PACKAGE`."""
        if name not in PATHS:
            return f"Unable to find package: {name}\n"
        return (
            f"Packages:\n  Package [{name}] (1a2b):\n    userId={CHROME_UID}\n    codePath={PATHS[name].rsplit('/', 1)[0]}\n    versionName=120.0\n"
            f"    usesStaticLibraries:\n      com.google.android.trichromelibrary version:1\n    usesLibraryFiles:\n      {TRICHROME}\n    timeStamp=1\n"
        )

    def properties(self) -> str:
        """`getprop`."""
        known = {
            "ro.build.version.sdk": "33",
            "ro.build.version.release": "13",
            "ro.product.model": "Scripted",
            "ro.product.cpu.abilist": "arm64-v8a",
            "ro.build.fingerprint": "scripted/scripted:13",
        }
        return "".join(f"[{key}]: [{value}]\n" for key, value in known.items())

    def processes(self) -> str:
        """`ps -A -o PID,UID,NAME`."""
        rows = [(1, 0, "init"), (900, CHROME_UID, CHROME), (950, 99012, f"{CHROME}:sandboxed_process0:org.chromium.content.app.SandboxedProcessService0:0")]
        return "  PID   UID NAME\n" + "".join(f"{pid:>5} {uid:>5} {name}\n" for pid, uid, name in rows)

    def members(self, apk: str) -> str:
        """`unzip -l`."""
        return (
            f"Archive:  {apk}\n  Length      Date    Time    Name\n---------  ---------- -----   ----\n"
            f"  {DEX_BYTES - 400_000}  1981-01-01 01:01   classes.dex\n   400000  1981-01-01 01:01   classes2.dex\n"
            f"---------                     -------\n  {DEX_BYTES}                     2 files\n"
        )
