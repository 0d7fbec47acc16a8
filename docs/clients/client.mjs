// Runs one prompt with agent exec and approves what agent asks. Node 18 or newer.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const agent = spawn("agent", ["exec", "--input-format", "stream-json", "--output-format", "stream-json"],
  { stdio: ["pipe", "pipe", "inherit"] });
const send = (line) => agent.stdin.write(JSON.stringify(line) + "\n");

send({ type: "hello", id: "hello", protocol: 1 });
send({ type: "input", id: "input", content: [{ type: "text", text: process.argv[2] }] });
for await (const line of createInterface({ input: agent.stdout })) {
  const event = JSON.parse(line);
  switch (event.type) {
    case "message_delta":
      process.stdout.write(event.text);
      break;
    case "question":
      console.error(event.title);
      send({ type: "answer", question: event.qid, choice: event.choices[0] });
      break;
    case "reply":
      if (event.error) throw new Error(event.error.message);
      break;
    case "result":
      console.error("\n" + event.outcome);
      agent.stdin.end(); // closes the session
  }
}
