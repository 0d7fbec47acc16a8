//go:build unix

package root

import (
	"encoding/json"
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
	hook := strings.NewReader(`{"url":"` + receiver.URL + `","events":["question.opened","turn.done"]}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/webhooks", hook)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(first.read(first.stdout)))
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%+v, %v", res, err)
	}
	_ = res.Body.Close()

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
	answers <- http.StatusNoContent
	w.agent(0, "answer", "--on", url, strings.TrimSpace(question), "yes")
	if done := <-got; done.Type != "turn.done" || done.Data.State != "idle" || done.id == asked.id {
		t.Errorf("notice %+v", done)
	}
	answers <- http.StatusOK
}
