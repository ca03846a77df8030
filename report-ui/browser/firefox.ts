// Firefox, driven by its own remote protocol (Marionette): JSON over a socket, no driver between.
//
// https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html. Owns starting and ending it, also where a test fails:
// its profile is a directory of its own, which goes with it.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** `FIREFOX` names another binary. */
export const FIREFOX = process.env["FIREFOX"] ?? ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find((path) => existsSync(path));

const START_MS = 60_000;

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

export class Firefox {
  private next = 1;
  private readonly waiting = new Map<number, Waiting>();
  private buffer = Buffer.alloc(0);

  private constructor(
    private readonly child: ChildProcess,
    private readonly profile: string,
    private readonly socket: Socket,
  ) {
    socket.on("data", (data) => this.take(data));
    const end = (): void => this.waiting.forEach(({ reject }) => reject(new Error("Firefox closed the connection")));
    socket.on("close", end);
    socket.on("error", end);
  }

  static async start(colours: "light" | "dark" = "light"): Promise<Firefox> {
    if (!FIREFOX) throw new Error("there is no Firefox");
    const profile = mkdtempSync(join(tmpdir(), "slowpath-firefox-"));
    const preferences = {
      // A free port, which Firefox writes into its profile.
      "marionette.port": 0,
      "layout.css.prefers-color-scheme.content-override": colours === "dark" ? 0 : 1,
      "browser.shell.checkDefaultBrowser": false,
      "datareporting.policy.dataSubmissionEnabled": false,
      "app.update.disabledForTesting": true,
      "browser.startup.homepage_override.mstone": "ignore",
      "toolkit.telemetry.enabled": false,
      "network.captive-portal-service.enabled": false,
      "network.connectivity-service.enabled": false,
    };
    writeFileSync(join(profile, "user.js"), Object.entries(preferences).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(""));
    const child = spawn(FIREFOX, ["--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile", profile], { stdio: "ignore", env: { ...process.env, MOZ_CRASHREPORTER_DISABLE: "1", HOME: profile } });
    const kill = (): void => void child.kill("SIGKILL");
    process.once("exit", kill);
    child.once("exit", () => process.removeListener("exit", kill));
    try {
      const socket = await connected(join(profile, "MarionetteActivePort"), child);
      const firefox = new Firefox(child, profile, socket);
      await firefox.send("WebDriver:NewSession");
      await firefox.send("WebDriver:SetTimeouts", { script: 120_000, pageLoad: 120_000 });
      return firefox;
    } catch (error) {
      kill();
      rmSync(profile, { recursive: true, force: true });
      throw error;
    }
  }

  /** Frames are a length in digits, a colon, and JSON: `[0, id, command, parameters]` and `[1, id, error, result]`. */
  private take(data: Buffer): void {
    this.buffer = Buffer.concat([this.buffer, data]);
    for (;;) {
      const colon = this.buffer.indexOf(":");
      if (colon < 0) return;
      const length = Number(this.buffer.subarray(0, colon).toString());
      if (this.buffer.length < colon + 1 + length) return;
      const message: unknown = JSON.parse(this.buffer.subarray(colon + 1, colon + 1 + length).toString());
      this.buffer = this.buffer.subarray(colon + 1 + length);
      // The first frame says who it is.
      if (!Array.isArray(message)) continue;
      const [, id, error, result] = message as [number, number, { message: string } | null, unknown];
      const one = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) one?.reject(new Error(error.message));
      else one?.resolve(result);
    }
  }

  async send(command: string, parameters: object = {}): Promise<unknown> {
    const id = this.next++;
    const text = JSON.stringify([0, id, command, parameters]);
    const answer = new Promise<unknown>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    return answer;
  }

  async value(command: string, parameters: object = {}): Promise<unknown> {
    const answer = (await this.send(command, parameters)) as { value: unknown } | null;
    return answer?.value;
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.send("Marionette:Quit", { flags: ["eForceQuit"] }).catch(() => undefined);
      const late = setTimeout(() => this.child.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(late);
    }
    this.socket.destroy();
    rmSync(this.profile, { recursive: true, force: true });
  }
}

async function connected(portFile: string, child: ChildProcess): Promise<Socket> {
  for (const until = Date.now() + START_MS; Date.now() < until; ) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`Firefox ended with ${child.exitCode ?? child.signalCode}`);
    const port = existsSync(portFile) ? Number(readFileSync(portFile, "utf8").trim()) : 0;
    if (port > 0) {
      return new Promise((resolve, reject) => {
        const socket = connect(port, "127.0.0.1", () => resolve(socket));
        socket.once("error", reject);
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("Firefox did not say in time where it listens");
}
