import os

from agent_plugin import Command, ContextSource, Error, Hook, Plugin, Prompt, Reply, Result, Tool, serve


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def keep(call, text):
    at = os.path.join(call.data_dir, "kept")
    with open(at, "w") as file:
        file.write(text)
    with open(at) as file:
        return file.read() or text  # another call may be writing


def ask(call):
    sure = call.confirm("Sure?")
    way = call.choose("Which?", ["left", "right"])
    name = call.ask_text("Name?", proposal="v1")
    form = call.ask_form("Where?", schema(["host"], host={"type": "string"}, stage={"enum": ["test", "live"], "type": "string"}))
    return f"{str(sure).lower()} {way} {name} {form['host']} {form['stage']}"


def consult(call):
    answer = call.ask_model("hi", system="Be brief.")
    return f"{answer.text} {answer.model}"


def large(call):
    call.write("live ")
    return Result("x" * (3 << 20) + " end", images=[("image/png", b"png")])


def lose(call):
    raise Error("NOT_FOUND", "no such ticket")


def wait(call):
    call.cancelled.wait()
    raise Error("CANCELLED", "cancelled")


def grow(call):
    name = f"grown{len(PLUGIN.tools)}"
    PLUGIN.set_tools([*PLUGIN.tools.values(), Tool(name, "New.", lambda call: "new", schema())])
    return "grown"


def note(call, event):
    return Reply(context="noted", message="seen")


PLUGIN = Plugin("author", "0.1.0", [
    Tool("settings", "Show the settings.", lambda call: call.settings, schema()),
    Tool("keep", "Keep a text.", keep, schema(["text"], text={"type": "string"})),
    Tool("ask", "Ask the user.", ask, schema()),
    Tool("consult", "Ask the model.", consult, schema(), asks_model=True),
    Tool("sneak", "Ask the model undeclared.", consult, schema()),
    Tool("repeat", "Repeat a text.", lambda call, text, times: Result(text * times, {"times": times}),
         schema(["text"], text={"type": "string"}, times={"type": "integer", "default": 2})),
    Tool("large", "Return much.", large, schema()),
    Tool("lose", "Fail.", lose, schema()),
    Tool("wait", "Wait.", wait, schema()),
    Tool("grow", "Get a tool.", grow, schema()),
    Command("say", "TEXT", "Say it", lambda call, args: args),
    Command("plan", "TEXT", "Plan it", lambda call, args: Prompt(f"Plan {args}.")),
    ContextSource("ticket", "The ticket", lambda call, request: f"ticket 1 about {request.input}, {request.max_tokens}"),
    Hook("PreToolUse", "guard", lambda call, event: Reply("deny", f"no {event['tool_input']['command']}"), condition="Bash(rm *)"),
    Hook("PostToolUse", "note", note),
    Hook("UserPromptSubmit", "block", lambda call, event: Reply("deny", "not now") if event["prompt"] == "block me" else None),
], dynamic=True)

serve(PLUGIN)
