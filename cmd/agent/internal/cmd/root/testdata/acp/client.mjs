// Drives agent acp with the official client library: node client.mjs SDK WORK AGENT ARGS…
// The fake model has the turns of TestOfficialClient.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

const [sdk, work, agent, ...args] = process.argv.slice(2);
const acp = await import(join(sdk, "dist/v1/stable/acp.js"));
const updates = [], asked = [];
let choice = "allow_once";
const of = (kind, id) => updates.filter((u) => u.sessionId === id && u.update.sessionUpdate === kind).map((u) => u.update);
const said = (id) => of("agent_message_chunk", id).map((u) => u.content.text).join("");

// connect runs f with a connection to a new process, which must then end by itself.
async function connect(f) {
  const child = spawn(agent, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await acp
    .client({ name: "test" })
    .onNotification("session/update", ({ params }) => void updates.push(params))
    .onRequest("session/request_permission", async ({ params }) => {
      asked.push(params);
      return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === choice).optionId } };
    })
    .connectWith(stream, async (c) => {
      const info = await c.request("initialize", { protocolVersion: 1, clientCapabilities: { auth: { terminal: true } } });
      assert.equal(info.agentInfo.name, "agent");
      assert.deepEqual(info.authMethods[0].args, ["setup"]);
      await f(c);
    });
  child.stdin.end();
  assert.equal(await ended, 0);
}
const prompt = (c, id, text) => c.request("session/prompt", { sessionId: id, prompt: [{ type: "text", text }] });

let id;
await connect(async (c) => {
  const made = await c.request("session/new", { cwd: work, mcpServers: [] });
  id = made.sessionId;
  assert.deepEqual(made.configOptions.map((o) => o.category), ["mode", "model", "thought_level"]);
  assert.equal(made.modes.currentModeId, "default");
  assert.equal((await prompt(c, id, "write")).stopReason, "end_turn");
  assert.equal(readFileSync(join(work, "a.txt"), "utf8"), "new\n");
  assert.equal(asked.length, 1);
  assert.equal(of("tool_call_update", id).at(-1).content[0].newText, "new\n");
  assert.ok(of("available_commands_update", id)[0].availableCommands.some((x) => x.name === "compact"));
  choice = "reject_always"; // is remembered, and saved
  assert.equal((await prompt(c, id, "write twice")).stopReason, "end_turn");
  assert.equal(asked.length, 2);
  assert.match(readFileSync(join(process.env.HOME, ".agent/settings.json"), "utf8"), /"deny": \["fs-write\(.*b\.txt\)"\]|"deny":\s*\[\s*"fs-write/);
  choice = "allow_once";
  await c.request("session/set_mode", { sessionId: id, modeId: "plan" });
  assert.equal((await prompt(c, id, "plan")).stopReason, "end_turn");
  assert.match(JSON.stringify(asked.at(-1)), /Change nothing at all/);
  assert.equal(of("current_mode_update", id).at(-1).currentModeId, "default");
  await c.request("session/set_config_option", { sessionId: id, configId: "effort", value: "high" });
  await c.request("session/set_config_option", { sessionId: id, configId: "mode", value: "bypass" });
  const running = prompt(c, id, "run");
  while (!JSON.stringify(of("tool_call_update", id)).includes("started")) await new Promise((r) => setTimeout(r, 20));
  const before = performance.now();
  await c.notify("session/cancel", { sessionId: id });
  assert.equal((await running).stopReason, "cancelled");
  assert.ok(performance.now() - before < 1000, "a cancel took more than a second");
  for (let i = 0; i < 20; i++) {
    const quick = prompt(c, id, "wait " + i);
    await c.notify("session/cancel", { sessionId: id });
    assert.equal((await quick).stopReason, "cancelled");
  }
});
const live = said(id);
updates.length = 0;
await connect(async (c) => {
  const loaded = await c.request("session/load", { sessionId: id, cwd: work, mcpServers: [] });
  // The effort is restored; the mode bypass must be chosen again.
  assert.deepEqual(loaded.configOptions.map((o) => `${o.id}=${o.currentValue}`).filter((v) => /^(mode|effort)=/.test(v)), ["mode=default", "effort=high"]);
  assert.equal(said(id), live);
  assert.ok(of("tool_call_update", id).some((u) => u.content?.[0]?.type === "diff"));
  const list = await c.request("session/list", { cwd: work });
  assert.equal(list.sessions.find((s) => s.sessionId === id).title, "write");
  await c.request("session/close", { sessionId: id });
  await c.request("session/delete", { sessionId: id });
  assert.ok(!(await c.request("session/list", {})).sessions.some((s) => s.sessionId === id));
  await assert.rejects(prompt(c, id, "x"), (e) => e.code === -32002);
  await assert.rejects(c.request("session/new", { cwd: "relative", mcpServers: [] }), (e) => e.code === -32602);
});
console.log("ok");
process.exit(0);
