package tui

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// refusedMsg says why the session did not take an answer.
type refusedMsg struct{ err error }

// ask shows a question of the session. The answer to one that outlived its process
// continues the session, as a run.
func (d *driver) ask(q event.Question, run string) {
	ctx, withdraw := context.WithCancel(d.ctx)
	d.asked[q.QID] = withdraw
	d.wg.Go(func() {
		defer withdraw()
		a, err := d.Asker.Ask(ctx, questionOf(q))
		if err != nil {
			return // withdrawn, or left open for later
		}
		c := sessions.Command{Type: "answer", Question: q.QID, Choice: a.Choice, Offer: a.Offer, Reason: a.Reason, Run: run}
		if len(a.Values) > 0 {
			c.Values = a.Values
		}
		if len(q.Choices) > 0 && a.Choice == "" { // dismissed, and no choice says so
			c = sessions.Command{Type: "cancel", Reason: "the question was dismissed"}
		}
		if _, err := d.Session.Do(d.ctx, c); err != nil && ctx.Err() == nil && d.open(q.QID) {
			d.post(refusedMsg{err})
		}
	})
}

// open reports whether a question still waits for an answer. If not, it crossed with
// this one, and the session has told, or will tell, how the question ended.
func (d *driver) open(qid string) bool {
	return slices.ContainsFunc(d.Session.Now().Questions, func(q event.Question) bool { return q.QID == qid })
}

// questionOf returns a question as the screens show it.
func questionOf(b event.Question) core.Question {
	q := core.Question{
		ID: b.QID, Kind: core.QuestionKind(b.Kind), AgentPath: b.AgentPath, Tool: b.Tool, Title: b.Title, Detail: b.Detail,
		Offers: b.Offers, Schema: b.Schema, URL: b.URL,
	}
	for _, c := range b.Choices {
		q.Choices = append(q.Choices, core.Choice(c))
	}
	for _, a := range b.Accesses {
		q.Accesses = append(q.Accesses, core.Access{Scope: core.Scope(a.Scope), Resource: a.Resource, Recursive: a.Recursive, Argv: a.Argv, Unconfined: a.Unconfined})
	}
	return q
}

// answered withdraws a question that another driver has answered, or nobody will.
func (d *driver) answered(qid string) {
	if withdraw := d.asked[qid]; withdraw != nil {
		withdraw()
		delete(d.asked, qid)
	}
}

// parked asks what a session waits for that was parked by an earlier process.
func (d *driver) parked(questions []event.Question) {
	d.work = work{busy: true, run: rand.Text(), since: d.scene.now(), abort: func() {}}
	d.ask(questions[0], d.work.run)
}
