// Builds dist/report.html, or with --tests or --browser the bundles that the tests run.
//
// The page's policy names the script and the style by their hashes, so nothing else can run or load
// in it, whatever the data hold. The data block is no script, so filling it leaves the hashes valid.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const PLACEHOLDER = "__SLOWPATH_DATA__";
const ROOT = new URL("./", import.meta.url);
const path = (name) => new URL(name, ROOT).pathname;

/** What CSP compares: the exact text between the tags. */
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

async function buildReport() {
  const script = await build({ entryPoints: [path("src/main.ts")], bundle: true, minify: true, write: false, format: "iife", target: "es2022", charset: "ascii", legalComments: "none" });
  const style = await build({ entryPoints: [path("src/style.css")], bundle: true, minify: true, write: false, target: ["chrome112", "firefox113", "safari16.4"], charset: "ascii" });
  const js = script.outputFiles[0].text.trim();
  const css = style.outputFiles[0].text.trim();
  if (/<\/script|<!--/i.test(js) || /<\/style/i.test(css)) throw new Error("the bundle would end its own tag");
  const policy = ["default-src 'none'", `script-src ${hash(js)}`, `style-src ${hash(css)}`, "img-src data:", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"].join("; ");
  // Functions as replacements: a `$&` in the bundle must stay what it is.
  const html = readFileSync(path("src/template.html"), "utf8")
    .replace("/*POLICY*/", () => policy)
    .replace("/*STYLE*/", () => css)
    .replace("/*SCRIPT*/", () => js)
    .replace("/*DATA*/", () => PLACEHOLDER);
  if (html.split(PLACEHOLDER).length !== 2) throw new Error(`the page must hold ${PLACEHOLDER} exactly once`);
  mkdirSync(path("dist"), { recursive: true });
  writeFileSync(path("dist/report.html"), html);
  console.log(`dist/report.html ${html.length} bytes (script ${js.length}, style ${css.length})`);
}

/** Bundles that Node runs; packages stay outside. */
async function buildForNode(folder, out) {
  rmSync(path(out), { recursive: true, force: true });
  const entryPoints = readdirSync(path(folder)).filter((f) => /\.(test|browser)\.ts$/.test(f)).map((f) => path(`${folder}/${f}`));
  await build({ entryPoints, outdir: path(out), bundle: true, platform: "node", format: "esm", target: "node20", packages: "external", sourcemap: "inline" });
}

const wanted = process.argv[2];
if (wanted === "--tests") await buildForNode("tests", "dist/tests");
else if (wanted === "--browser") await buildForNode("browser", "dist/browser");
else await buildReport();
