//go:build unix

package root

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// TestServiceWebhook: a webhook that fails while the service is killed is told by the
// next one, with the same ID.
func TestServiceWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToWrite)
	type notice struct {
		id   string
		Type string
		Data struct{ Session, State string }
	}
	got, answers := make(chan notice, 20), make(chan int, 20)
	receiver := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
		n := notice{id: req.Header.Get("webhook-id")}
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = json.Unmarshal(body, &n)
		}
		if err != nil || !strings.HasPrefix(req.Header.Get("webhook-signature"), "v1,") {
			t.Errorf("%s: %v", body, err)
		}
		got <- n
		select {
		case status, more := <-answers:
			if more {
				res.WriteHeader(status)
			}
		case <-req.Context().Done(): // the service was killed
		}
	}))
	defer receiver.Close()
	defer close(answers)
	options := []string{"--no-sandbox", "--permission-mode", "default", "--private-webhooks", "--listen"}
	first, url := w.serveWith(append(options, "127.0.0.1:0")...)
	secret, _ := w.agent(0, "serve", "webhook", "add", receiver.URL, "--on", url, "--id", "bot", "--event", "question.opened,turn.done")
	w.wants(secret, "whsec_")
	_, errs := w.agent(1, "serve", "webhook", "add", receiver.URL, "--on", url, "--id", "bot")
	w.wants(errs, "there is a webhook bot")
	list, _ := w.agent(0, "serve", "webhook", "list", "--on", url)
	w.wants(list, receiver.URL, "question.opened,turn.done", "never")

	question, _ := w.agent(7, "exec", "--on", url, "--on-ask", "park", "Make a file")
	asked := <-got
	if asked.Type != "question.opened" || asked.Data.State != "parked" || !strings.HasPrefix(question, asked.Data.Session) {
		t.Errorf("notice %+v, question %s", asked, question)
	}
	first.signal(syscall.SIGKILL)
	first.wait()
	w.serveWith(append(options, strings.TrimPrefix(url, "http://"))...)
	if again := <-got; again != asked {
		t.Errorf("notice %+v, then %+v", asked, again)
	}
	answers <- http.StatusBadGateway
	if third := <-got; third != asked {
		t.Errorf("notice %+v, then %+v", asked, third)
	}
	w.webhook(url, "1 pending, the webhook answered 502")
	answers <- http.StatusNoContent
	w.webhook(url, "0 pending, ")
	w.agent(0, "answer", "--on", url, strings.TrimSpace(question), "yes")
	if done := <-got; done.Type != "turn.done" || done.Data.State != "idle" || done.id == asked.id {
		t.Errorf("notice %+v", done)
	}
	answers <- http.StatusOK
	w.agent(0, "serve", "webhook", "delete", "bot", "--on", url)
	_, errs = w.agent(0, "serve", "webhook", "list", "--on", url)
	w.wants(errs, "No webhooks")
	_, errs = w.agent(1, "serve", "webhook", "delete", "bot", "--on", url)
	w.wants(errs, "there is no webhook bot")
}

// webhook waits until the only webhook of a service is as wanted.
func (w *world) webhook(url, want string) {
	w.t.Helper()
	last := ""
	err := await(want, func() bool {
		out, _ := w.agent(0, "serve", "webhook", "list", "--json", "--on", url)
		var list []struct {
			Pending   int
			LastError string
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
			w.t.Fatalf("%s: %v", out, err)
		}
		last = fmt.Sprintf("%d pending, %s", list[0].Pending, list[0].LastError)
		return last == want
	})
	if err != nil {
		w.t.Fatalf("%v; it is %s", err, last)
	}
}
