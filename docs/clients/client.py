"""Runs one prompt and asks on the terminal what agent asks: in a separate session or, with
the path of a socket in AGENT_SOCKET, in one of agent serve --socket."""
import json, os, socket, subprocess, sys

if os.environ.get("AGENT_SOCKET"):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["AGENT_SOCKET"])
    lines, commands = connection.makefile("r", encoding="utf-8"), connection.makefile("w", encoding="utf-8")
    end = lambda: connection.shutdown(socket.SHUT_WR)
else:
    agent = subprocess.Popen(["agent", "serve", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    lines, commands, end = agent.stdout, agent.stdin, agent.stdin.close

def send(**line):
    commands.write(json.dumps(line) + "\n")
    commands.flush()

def choose(question):
    print(question["title"], question["choices"], file=sys.stderr)
    answer = sys.stdin.readline().strip()
    return answer if answer in question["choices"] else question["choices"][0]

send(type="hello", id="hello", protocol=1)
send(type="input", id="input", content=[{"type": "text", "text": sys.argv[1]}])
for line in lines:
    event = json.loads(line)
    if event["type"] == "message_delta":
        print(event["text"], end="", flush=True)
    elif event["type"] == "question":
        send(type="answer", question=event["qid"], choice=choose(event))
    elif event["type"] == "reply" and "error" in event:
        sys.exit(event["error"]["message"])
    elif event["type"] == "result":
        print("\n" + event["outcome"], file=sys.stderr)
        end()  # closes the session
