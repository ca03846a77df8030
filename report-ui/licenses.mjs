// Fails when an installed package is under a license that is not on the list.
//
// Nothing of these packages ends up in the report (they build and test it); the list is kept short
// all the same.

import { existsSync, readFileSync } from "node:fs";

const ALLOWED = new Set(["MIT", "Apache-2.0", "ISC", "BSD-2-Clause", "BSD-3-Clause", "PSF-2.0", "Python-2.0"]);

const root = new URL("./", import.meta.url).pathname;
const lock = JSON.parse(readFileSync(`${root}package-lock.json`, "utf8"));
let bad = 0;
let seen = 0;
for (const [path, entry] of Object.entries(lock.packages)) {
  if (path === "") continue;
  // Builds for other systems are in the lock file but not installed; the lock file names their license.
  const manifest = `${root}${path}/package.json`;
  const license = entry.license ?? (existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).license : undefined);
  seen++;
  if (!ALLOWED.has(license)) {
    console.error(`${path}: license ${license ?? "not stated"}`);
    bad++;
  }
}
console.log(`${seen} packages, ${bad} with a license that is not allowed`);
process.exit(bad === 0 ? 0 : 1);
