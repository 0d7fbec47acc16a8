// Runs one prompt with agent serve and approves what agent asks. Node 22.18 or newer runs it as it is.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Command, Line } from "./protocol.ts";

const agent = spawn("agent", ["serve", "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const send = (command: Command) => agent.stdin.write(JSON.stringify(command) + "\n");

send({ type: "hello", id: "hello", protocol: 1 });
send({ type: "input", id: "input", content: [{ type: "text", text: process.argv[2] ?? "" }] });
for await (const text of createInterface({ input: agent.stdout })) {
  const line = JSON.parse(text) as Line;
  switch (line.type) {
    case "message_delta":
      process.stdout.write(line.text);
      break;
    case "question":
      console.error(line.title);
      send({ type: "answer", question: line.qid, choice: line.choices?.[0] });
      break;
    case "reply":
      if (line.error) throw new Error(line.error.message);
      break;
    case "result":
      console.error("\n" + line.outcome);
      agent.stdin.end(); // closes the session
  }
}
