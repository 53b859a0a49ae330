"""A JSON Schema checker that knows nothing of our validator must give the same verdict on every plan.

usage: schema_agrees.py PLAN_DUMP EXAMPLES TESTS

expected.json says per broken plan what the schema can see: "reject"; "accept" where only the validator can know (cross
references, arithmetic, secrets, what YAML does to the text); "not_yaml" where there is no value to check.
"""
import json
import pathlib
import subprocess
import sys

import jsonschema

dump, examples, tests = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
failures = []

text = subprocess.run([dump, "--schema"], check=True, capture_output=True, text=True).stdout
schema = json.loads(text)
jsonschema.Draft202012Validator.check_schema(schema)
checker = jsonschema.Draft202012Validator(schema)
if (examples / "plan.schema.json").read_text() != text:
    failures.append("plans/examples/plan.schema.json is not what plan_dump --schema prints")


def verdicts(folder):
    lines = subprocess.run([dump, str(folder)], check=True, capture_output=True, text=True).stdout.splitlines()
    return {item["file"]: item for item in map(json.loads, lines)}


table = json.loads((tests / "expected.json").read_text())
for name, item in sorted(verdicts(examples).items()):
    for error in checker.iter_errors(item["value"]):
        failures.append(f"{name}: the schema rejects an example: {error.message}")
    if item["found"]:
        failures.append(f"{name}: the validator rejects an example: {item['found']}")

broken = verdicts(tests / "broken")
if set(broken) != {name + ".yaml" for name in table}:
    failures.append("expected.json and broken/ do not list the same plans")
for name, item in sorted(broken.items()):
    wanted = table.get(name.removesuffix(".yaml"), {}).get("schema")
    if not item["found"]:
        failures.append(f"{name}: the validator accepts it")
    if wanted == "not_yaml":
        continue
    seen = "accept" if checker.is_valid(item["value"]) else "reject"
    if seen != wanted:
        failures.append(f"{name}: the schema would {seen}, expected is {wanted}")

compared = sum(1 for entry in table.values() if entry["schema"] == "reject")
if compared < 40:
    failures.append(f"only {compared} broken plans are structural")
print("\n".join(failures) or f"validator and schema agree; {compared} of {len(table)} broken plans are refused by both")
sys.exit(1 if failures else 0)
