mod agent_plugin;
mod messages;

use agent_plugin::{serve, Call, Command, ContextSource, Failure, Hook, Outcome, Plugin, Reply, Tool};
use serde_json::{json, Value};

fn schema(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn keep(call: &Call, args: &Value) -> Result<Outcome, Failure> {
    let (at, text) = (call.data_dir().join("kept"), args["text"].as_str().unwrap());
    std::fs::write(&at, text)?;
    let kept = std::fs::read_to_string(&at)?;
    Ok(if kept.is_empty() { text.into() } else { kept.into() }) // another call may be writing
}

fn ask(call: &Call, _: &Value) -> Result<Outcome, Failure> {
    let sure = call.confirm("Sure?", "")?;
    let way = call.choose("Which?", "", &["left", "right"])?;
    let name = call.ask_text("Name?", "", "v1")?;
    let fields = json!({"host": {"type": "string"}, "stage": {"enum": ["test", "live"], "type": "string"}});
    let form = call.ask_form("Where?", "", schema(&["host"], fields))?;
    Ok(format!("{sure} {way} {name} {} {}", form["host"].as_str().unwrap(), form["stage"].as_str().unwrap()).into())
}

fn consult(call: &Call, _: &Value) -> Result<Outcome, Failure> {
    let answer = call.ask_model("Be brief.", "hi", 0)?;
    Ok(format!("{} {}", answer.text, answer.model).into())
}

fn repeat(_: &Call, args: &Value) -> Result<Outcome, Failure> {
    let (text, times) = (args["text"].as_str().unwrap(), args["times"].as_u64().unwrap());
    Ok(Outcome { text: text.repeat(times as usize), structured: Some(json!({ "times": times })), ..Outcome::default() })
}

fn large(call: &Call, _: &Value) -> Result<Outcome, Failure> {
    call.write("live ");
    let images = vec![("image/png".to_string(), b"png".to_vec())];
    Ok(Outcome { text: "x".repeat(3 << 20) + " end", images, ..Outcome::default() })
}

fn wait(call: &Call, _: &Value) -> Result<Outcome, Failure> {
    call.wait_cancelled();
    Err(Failure::new("CANCELLED", "cancelled"))
}

fn main() {
    let (none, text) = (schema(&[], json!({})), json!({"type": "string"}));
    let plugin = Plugin::new("author", "0.1.0");
    plugin.dynamic();
    let grown = plugin.clone();
    plugin.set_tools(vec![
        Tool::new("settings", "Show the settings.", none.clone(), |call, _| Ok(call.settings()?.into())),
        Tool::new("keep", "Keep a text.", schema(&["text"], json!({ "text": text })), keep),
        Tool::new("ask", "Ask the user.", none.clone(), ask),
        Tool { asks_model: true, ..Tool::new("consult", "Ask the model.", none.clone(), consult) },
        Tool::new("sneak", "Ask the model undeclared.", none.clone(), consult),
        Tool::new("repeat", "Repeat a text.", schema(&["text"], json!({"text": text, "times": {"type": "integer", "default": 2}})), repeat),
        Tool::new("large", "Return much.", none.clone(), large),
        Tool::new("lose", "Fail.", none.clone(), |_, _| Err(Failure::new("NOT_FOUND", "no such ticket"))),
        Tool::new("wait", "Wait.", none.clone(), wait),
        Tool::new("grow", "Get a tool.", none.clone(), move |_, _| {
            let mut tools = grown.tools();
            tools.push(Tool::new(&format!("grown{}", tools.len()), "New.", none.clone(), |_, _| Ok("new".into())));
            grown.set_tools(tools);
            Ok("grown".into())
        }),
    ]);
    plugin.set_commands(vec![
        Command::new("say", "TEXT", "Say it", |_, args| Ok(args.into())),
        Command::new("plan", "TEXT", "Plan it", |_, args| Ok(Outcome::prompt(format!("Plan {args}.")))),
    ]);
    plugin.set_contexts(vec![ContextSource::new("ticket", "The ticket", |_, r| {
        Ok(format!("ticket 1 about {}, {}", r.input, r.max_tokens).into())
    })]);
    let deny = |reason: String| Ok(Some(Reply { verdict: Some("deny"), reason, ..Reply::default() }));
    plugin.set_hooks(vec![
        Hook {
            condition: "Bash(rm *)".into(),
            ..Hook::new("PreToolUse", "guard", move |_, e| deny(format!("no {}", e["tool_input"]["command"].as_str().unwrap())))
        },
        Hook::new("PostToolUse", "note", |_, _| Ok(Some(Reply { context: "noted".into(), message: "seen".into(), ..Reply::default() }))),
        Hook::new("UserPromptSubmit", "block", move |_, e| if e["prompt"] == "block me" { deny("not now".into()) } else { Ok(None) }),
    ]);
    serve(plugin);
}
