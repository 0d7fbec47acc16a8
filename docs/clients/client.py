"""Runs one prompt with agent exec and asks on the terminal what agent asks."""
import json, subprocess, sys

agent = subprocess.Popen(
    ["agent", "exec", "--input-format", "stream-json", "--output-format", "stream-json"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

def send(**line):
    agent.stdin.write(json.dumps(line) + "\n")
    agent.stdin.flush()

def choose(question):
    print(question["title"], question["choices"], file=sys.stderr)
    answer = sys.stdin.readline().strip()
    return answer if answer in question["choices"] else question["choices"][0]

send(type="hello", id="hello", protocol=1)
send(type="input", id="input", content=[{"type": "text", "text": sys.argv[1]}])
for line in agent.stdout:
    event = json.loads(line)
    if event["type"] == "message_delta":
        print(event["text"], end="", flush=True)
    elif event["type"] == "question":
        send(type="answer", question=event["qid"], choice=choose(event))
    elif event["type"] == "reply" and "error" in event:
        sys.exit(event["error"]["message"])
    elif event["type"] == "result":
        print("\n" + event["outcome"], file=sys.stderr)
        agent.stdin.close()  # closes the session
sys.exit(agent.wait())
