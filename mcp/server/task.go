package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// taskName is the tool that gives the agent a task.
const taskName = "run_task"

// taskArgs are the arguments of run_task.
type taskArgs struct {
	Prompt  string `json:"prompt"`
	Session string `json:"session"`
}

// taskReport is its structured result.
type taskReport struct {
	Session string   `json:"session"`
	Outcome string   `json:"outcome"`
	Text    string   `json:"text"`
	Rounds  int      `json:"rounds"`
	Tokens  int      `json:"tokens"`
	Denied  []string `json:"denied"`
}

func taskTool() mcp.Tool {
	t := mcp.NewToolWithRawSchema(taskName,
		"Give a coding agent a task in this server's workspace. It works on its own, with its own model and tools, until the task is done, and answers with what it did. "+
			"Progress tells what it is doing. It cannot see your conversation: put all that it must know into the prompt.",
		json.RawMessage(`{"type": "object", "properties": {
			"prompt": {"type": "string", "description": "The task, with all that the agent must know."},
			"session": {"type": "string", "description": "Id of a session from an earlier result, to go on with it."}
		}, "required": ["prompt"], "additionalProperties": false}`))
	t.RawOutputSchema = json.RawMessage(`{"type": "object", "properties": {
		"session": {"type": "string", "description": "Id of the session, to go on with it."},
		"outcome": {"type": "string", "description": "Why it ended: done, or what kept it from being done."},
		"text": {"type": "string", "description": "The agent's last answer."},
		"rounds": {"type": "integer", "description": "Rounds of tool calls."},
		"tokens": {"type": "integer", "description": "Tokens used."},
		"denied": {"type": "array", "items": {"type": "string"}, "description": "Tools whose calls were denied."}
	}, "required": ["session", "outcome", "text", "rounds", "tokens", "denied"]}`)
	return t
}

// runTask implements runner: a session with the agent's own model.
func (s *Server) runTask(c *call) *mcp.CallToolResult {
	var args taskArgs
	if err := json.Unmarshal(c.args, &args); err != nil || strings.TrimSpace(args.Prompt) == "" {
		return failure("Invalid arguments: expected {\"prompt\": TEXT}, and \"session\": ID to go on with an earlier one.")
	}
	session, err := s.opts.Open(c.ctx, SessionOptions{Asker: c, Resume: args.Session})
	if err != nil {
		return failure(fmt.Sprintf("No session could be opened: %v", err))
	}
	var reading sync.WaitGroup
	reading.Go(func() { tellEvents(c, session) })
	out, err := session.Submit(c.ctx, core.TextInput(args.Prompt))
	if closed := session.Close(); err == nil { // it ends the events
		err = closed
	}
	reading.Wait()
	report := taskReport{Session: session.ID(), Outcome: string(out.Stop), Text: out.Text, Rounds: out.Rounds, Tokens: out.Usage.Total(), Denied: []string{}}
	for _, d := range out.Denied {
		report.Denied = append(report.Denied, d.Tool)
	}
	text := out.Text
	if err != nil {
		text = fmt.Sprintf("The task failed: %v", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(text)}, StructuredContent: report, IsError: err != nil}
}

// tellEvents passes on what the session does, as progress without an end: how
// many steps there were, and what the last one is.
func tellEvents(c *call, session Session) {
	step := 0.0
	for e, err := range session.Events(context.WithoutCancel(c.ctx), 0) {
		if err != nil {
			return
		}
		text := ""
		switch b := e.Body.(type) {
		case event.ToolUse:
			text = b.Name + " " + oneLine(b.Args)
		case event.Message:
			text = oneLine(b.Content.Text())
		case event.ToolProgress:
			text = oneLine(b.Message)
		case event.Warning:
			text = oneLine(b.Message)
		}
		if text != "" {
			step++
			c.report(core.Progress{Done: step, Message: text})
		}
	}
}

// oneLine is the beginning of a text, for people.
func oneLine(text string) string {
	const longest = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}
