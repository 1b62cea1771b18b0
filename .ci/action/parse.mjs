// GitHub's own parser for workflows and actions.
import fs from "node:fs";
import { NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";
import { parseAction } from "./node_modules/@actions/workflow-parser/dist/actions/action-parser.js";

let failed = false;
for (const file of process.argv.slice(2)) {
  const parse = /(^|\/)action\.ya?ml$/.test(file) ? parseAction : parseWorkflow;
  const result = parse({ name: file, content: fs.readFileSync(file, "utf8") }, new NoOperationTraceWriter());
  for (const error of result.context.errors.getErrors()) {
    console.log(`${file}: ${error.message}`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
