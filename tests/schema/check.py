#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks every line of a JSON lines file against a JSON schema.

usage: check.py SCHEMA FILE ("-": standard input)

Knows the part of JSON Schema that docs/jsonl.schema.json uses and refuses a schema that uses more,
so that it needs nothing beside Python itself. Prints the first wrong lines and exits with 1.
"""
import json
import re
import sys

SHOWN = 10
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "integer": int,
    "null": type(None),
}


def is_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)


class Schema:
    """A schema; problems() says in which ways a value is not what it describes."""

    def __init__(self, root):
        self.root = root

    def resolve(self, reference):
        node = self.root
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        return node

    def problems(self, value, schema, path="line"):
        found = []
        for keyword, argument in schema.items():
            check = getattr(self, "check_" + keyword.strip("$"), None)
            if check is None:
                raise SystemExit(f"check.py does not know the keyword {keyword}")
            found += check(value, argument, schema, path)
        return found

    def matches(self, value, schema):
        return not self.problems(value, schema)

    # Notes for readers, and what other keywords look up themselves.
    def check_schema(self, value, argument, schema, path):
        return []

    check_title = check_defs = check_then = check_schema

    def check_ref(self, value, argument, schema, path):
        return self.problems(value, self.resolve(argument), path)

    def check_type(self, value, argument, schema, path):
        return [] if is_type(value, argument) else [f"{path} is no {argument}: {value!r}"]

    def check_const(self, value, argument, schema, path):
        return [] if same(value, argument) else [f"{path} is {value!r}, not {argument!r}"]

    def check_enum(self, value, argument, schema, path):
        if any(same(value, choice) for choice in argument):
            return []
        return [f"{path} is {value!r}, none of {argument}"]

    def check_pattern(self, value, argument, schema, path):
        if not isinstance(value, str) or re.search(argument, value):
            return []
        return [f"{path} is {value!r}, which does not match {argument}"]

    def check_minimum(self, value, argument, schema, path):
        return [f"{path} is {value}, below {argument}"] if is_type(value, "number") and value < argument else []

    def check_maximum(self, value, argument, schema, path):
        return [f"{path} is {value}, above {argument}"] if is_type(value, "number") and value > argument else []

    def check_minItems(self, value, argument, schema, path):
        return [f"{path} has only {len(value)} items"] if len(value) < argument else []

    def check_maxItems(self, value, argument, schema, path):
        return [f"{path} has {len(value)} items"] if len(value) > argument else []

    def check_items(self, value, argument, schema, path):
        found = []
        for i, item in enumerate(value):
            found += self.problems(item, argument, f"{path}[{i}]")
        return found

    def check_required(self, value, argument, schema, path):
        return [f"{path} has no {key}" for key in argument if key not in value]

    def check_properties(self, value, argument, schema, path):
        found = []
        for key in argument.keys() & value.keys():
            found += self.problems(value[key], argument[key], f"{path}.{key}")
        return found

    def check_additionalProperties(self, value, argument, schema, path):
        others = value.keys() - schema.get("properties", {}).keys()
        if argument is False:
            return [f"{path} has {key}, which is not known" for key in others]
        return [problem for key in others for problem in self.problems(value[key], argument, f"{path}.{key}")]

    def check_allOf(self, value, argument, schema, path):
        return [problem for each in argument for problem in self.problems(value, each, path)]

    def check_oneOf(self, value, argument, schema, path):
        results = [self.problems(value, each, path) for each in argument]
        fitting = results.count([])
        if fitting == 1:
            return []
        if fitting:
            return [f"{path} fits {fitting} forms"]
        return min(results, key=len)  # of the form that it is nearest to

    def check_not(self, value, argument, schema, path):
        return [f"{path} fits {argument}"] if self.matches(value, argument) else []

    def check_if(self, value, argument, schema, path):
        return self.problems(value, schema["then"], path) if self.matches(value, argument) else []


def no_repeated_keys(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key stands twice in {keys}")
    return dict(pairs)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        root = json.load(file)
    schema = Schema(root)
    source = sys.stdin if sys.argv[2] == "-" else open(sys.argv[2], encoding="utf-8")
    wrong = lines = 0
    for lines, line in enumerate(source, 1):
        try:
            found = schema.problems(json.loads(line, object_pairs_hook=no_repeated_keys), root)
        except ValueError as error:
            found = [str(error)]
        wrong += bool(found)
        if found and wrong <= SHOWN:
            print(f"line {lines}: {'; '.join(found)}", file=sys.stderr)
    print(f"{lines} lines, {wrong} wrong")
    return 1 if wrong or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
