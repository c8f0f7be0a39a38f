// SPDX-License-Identifier: MIT
// Asks DuckDB each query and prints how many seconds it took and its rows, as JSON: node ask.mjs MODULES SQL...
import { createRequire } from "module";

const [modules, ...queries] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(modules + "/")("@duckdb/node-api");
const connection = await (await DuckDBInstance.create(":memory:")).connect();
const answers = [];
for (const sql of queries) {
  const begin = performance.now();
  const rows = (await connection.runAndReadAll(sql)).getRows();
  answers.push({ seconds: (performance.now() - begin) / 1000, rows: rows.map((row) => row.map(String)) });
}
console.log(JSON.stringify({ answers, mib: process.memoryUsage().rss / 2 ** 20 }));
