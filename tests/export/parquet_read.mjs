// SPDX-License-Identifier: MIT
// Parquet files as other programs read them, as JSON on standard output:
//
//     node parquet_read.mjs MODULES duckdb SQL...                names of columns, and rows, for each query
//     node parquet_read.mjs MODULES hyparquet|parquet-wasm FILE...   names of columns, and rows, for each file
//
// Whole numbers of any size are plain digits, as Python reads them. MODULES is a node_modules.
import { createRequire } from "module";
import { existsSync, readFileSync, openSync, readSync, fstatSync } from "fs";
import { pathToFileURL } from "url";

const [modules, engine, ...args] = process.argv.slice(2);
const require = createRequire(modules + "/");
const module_of = (path) => import(pathToFileURL(modules + "/" + path));

function json(value) {
  if (value === null || value === undefined) return "null";
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return "[" + value.map(json).join(",") + "]";
  if (value && typeof value === "object") return JSON.stringify(String(value));
  return JSON.stringify(value);
}

async function duckdb() {
  const { DuckDBInstance } = require("@duckdb/node-api");
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  const answers = [];
  for (const sql of args) {
    const answer = await connection.runAndReadAll(sql);
    answers.push([answer.columnNames(), answer.getRows()]);
  }
  return answers;
}

function slices_of(path) {
  const fd = openSync(path, "r");
  return {
    byteLength: fstatSync(fd).size,
    slice(begin, end) {
      const bytes = Buffer.alloc((end ?? this.byteLength) - begin);
      readSync(fd, bytes, 0, bytes.length, begin);
      return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    },
  };
}

async function hyparquet() {
  const { parquetMetadataAsync, parquetReadObjects } = await module_of("hyparquet/src/index.js");
  const { compressors } = await module_of("hyparquet-compressors/src/index.js");
  const tables = [];
  for (const path of args) {
    const file = slices_of(path);
    const names = (await parquetMetadataAsync(file)).schema.slice(1).map((column) => column.name);
    const rows = await parquetReadObjects({ file, compressors });
    tables.push([names, rows.map((row) => names.map((name) => row[name]))]);
  }
  return tables;
}

function parquet_wasm() {
  const { readParquet } = require("parquet-wasm");
  const { tableFromIPC } = require("apache-arrow");
  return args.map((path) => {
    const table = tableFromIPC(readParquet(new Uint8Array(readFileSync(path))).intoIPCStream());
    const columns = table.schema.fields.map((_, i) => table.getChildAt(i));
    const rows = Array.from({ length: table.numRows }, (_, row) => columns.map((column) => column.get(row)));
    return [table.schema.fields.map((field) => field.name), rows];
  });
}

if (!existsSync(modules)) throw new Error(`no ${modules}`);
const answer = await { duckdb, hyparquet, "parquet-wasm": parquet_wasm }[engine]();
process.stdout.write(json(answer) + "\n");
