package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/sdk/host"
)

// Webhook is an address that is told what happens in the sessions of a tenant. What is
// sent is that of Standard Webhooks: a body of JSON with type, timestamp and data, and
// the headers webhook-id, webhook-timestamp and webhook-signature. A notice is sent until
// the address answers with a status of 2xx, for a day, so that one may come twice, with
// the same webhook-id; those of one webhook are sent in their order.
type Webhook struct {
	ID      string    `json:"id"`
	URL     string    `json:"url"`
	Events  []string  `json:"events"` // of [WebhookEvents]
	Secret  string    `json:"secret,omitempty"`
	Created time.Time `json:"created,omitzero"`

	Pending      int       `json:"pending,omitempty"`     // notices that wait; set by [ListWebhooks]
	LastTry      time.Time `json:"lastTry,omitzero"`      // when it was last called
	LastDelivery time.Time `json:"lastDelivery,omitzero"` // when it last took a notice
	LastError    string    `json:"lastError,omitempty"`   // of the last try, if that failed
}

// The events of webhooks.
const (
	EventQuestion = "question.opened" // a session waits for answers
	EventTurn     = "turn.done"       // a command was carried out, and the session waits for no answer
	EventDeleted  = "session.deleted"
)

// WebhookEvents returns the events that a webhook can have.
func WebhookEvents() []string { return []string{EventQuestion, EventTurn, EventDeleted} }

const (
	webhooks      = "webhooks" // the name of the tenant's value
	webhookPrefix = "webhook-"
	secretPrefix  = "whsec_"
	secretSize    = 32 // bytes
	maxURL        = 2048
	maxNoticeText = 500 // bytes of a title or an error in a notice
	maxQuestions  = 20  // in a notice
)

// IsWebhook reports whether an ID is not that of a session, but of a webhook: its notices
// are commands for this ID. No session can have it.
func IsWebhook(id string) bool { return strings.HasPrefix(id, webhookPrefix) }

// Inbox returns the ID for which the webhook's notices are kept.
func (h Webhook) Inbox() string { return webhookPrefix + h.ID }

// Check says what is wrong with the address or the events. Private allows http and
// addresses that are not on the internet; the address that a name leads to is checked
// when it is called.
func (h Webhook) Check(private bool) error {
	u, err := url.Parse(h.URL)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || len(h.URL) > maxURL || u.Scheme != "https" && (u.Scheme != "http" || !private):
		return fmt.Errorf("url: use https://, a host and a path, without a user, up to %d bytes", maxURL)
	case !private && nearby(u.Hostname()):
		return errors.New("url: this service calls no addresses of its machine and of private networks")
	case len(h.Events) == 0:
		return fmt.Errorf("events: use one or more of %s", strings.Join(WebhookEvents(), ", "))
	}
	for _, e := range h.Events {
		if !slices.Contains(WebhookEvents(), e) {
			return fmt.Errorf("events: %.40q is unknown: use one or more of %s", e, strings.Join(WebhookEvents(), ", "))
		}
	}
	return nil
}

// nearby reports whether a host is seen to be none of the internet.
func nearby(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && !sandbox.Public(ip)
}

// NewSecret returns a secret for the signatures of a webhook.
func NewSecret() string {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // it never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// Webhooks returns the webhooks of a tenant, with their secrets.
func Webhooks(ctx context.Context, e Engine, tenant string) ([]Webhook, error) {
	list, _, err := readList[Webhook](ctx, e, tenant, webhooks)
	return list, err
}

// ListWebhooks returns the webhooks of a tenant without their secrets, and how it goes
// with their notices.
func ListWebhooks(ctx context.Context, e Engine, tenant string) ([]Webhook, error) {
	list, err := Webhooks(ctx, e, tenant)
	for i := range list {
		waiting, failed := e.Commands(ctx, tenant, list[i].Inbox())
		if failed != nil {
			return nil, failed
		}
		list[i].Secret, list[i].Pending = "", len(waiting)
	}
	return list, err
}

// ChangeWebhooks replaces the webhooks of a tenant by what change makes of them. It is
// called again if somebody else changed them meanwhile.
func ChangeWebhooks(ctx context.Context, e Engine, tenant string, change func([]Webhook) ([]Webhook, error)) error {
	return changeList(ctx, e, tenant, webhooks, change)
}

// notice is the body of a request to a webhook.
type notice struct {
	Type      string     `json:"type"`
	Timestamp time.Time  `json:"timestamp"`
	Data      noticeData `json:"data"`
}

type noticeData struct {
	Session   string           `json:"session"`
	Title     string           `json:"title,omitempty"`
	State     State            `json:"state,omitempty"`
	Run       string           `json:"run,omitempty"` // the ID of the command
	Error     string           `json:"error,omitempty"`
	Questions []noticeQuestion `json:"questions,omitempty"`
	Deadline  time.Time        `json:"deadline,omitzero"`
}

type noticeQuestion struct {
	QID     string   `json:"qid"`
	Title   string   `json:"title"`
	Choices []string `json:"choices"`
}

// tell tells the webhooks that a command was carried out. The command is still kept: if
// this worker dies, the next one comes here again.
func (t *turn) tell(ctx context.Context, c Command) error {
	s := t.session
	n := notice{Type: EventTurn, Data: noticeData{State: s.State, Run: c.ID, Error: clip(s.Error), Deadline: s.Deadline}}
	if len(s.Questions) > 0 {
		n.Type = EventQuestion
	}
	for _, q := range s.Questions[:min(len(s.Questions), maxQuestions)] {
		n.Data.Questions = append(n.Data.Questions, questionOf(q))
	}
	return notify(ctx, t.worker.opts.Engine, s, n)
}

func questionOf(q event.Question) noticeQuestion {
	return noticeQuestion{QID: q.QID, Title: clip(q.Title), Choices: Choices(q)}
}

// Deleting prepares that a session is deleted: what it used today still counts, and the
// webhooks are told.
func Deleting(ctx context.Context, e Engine, s Session) error {
	if err := remember(ctx, e, s); err != nil {
		return err
	}
	return notify(ctx, e, s, notice{Type: EventDeleted})
}

// notify keeps a notice for each webhook of the session's tenant that wants it. The same
// notice has the same ID however often it is sent.
func notify(ctx context.Context, e Engine, s Session, n notice) error {
	list, err := Webhooks(ctx, e, s.Tenant)
	if err != nil {
		return err
	}
	n.Timestamp, n.Data.Session, n.Data.Title = time.Now().UTC(), s.ID, clip(s.Title)
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	for _, h := range list {
		if !slices.Contains(h.Events, n.Type) {
			continue
		}
		name := fmt.Appendf(nil, "%s/%s/%s/%d/%s/%s", s.Tenant, h.ID, s.ID, s.Created.UnixNano(), n.Type, n.Data.Run)
		c := Command{ID: uuid.NewSHA1(uuid.NameSpaceURL, name).String(), Command: host.Command{Type: typeInput, Content: []host.Part{{Type: "text", Text: string(body)}}}}
		if err := e.Send(ctx, s.Tenant, h.Inbox(), c); err != nil {
			return fmt.Errorf("notice for webhook %s: %w", h.ID, err)
		}
	}
	return nil
}

// clip shortens a text for a notice.
func clip(s string) string {
	if len(s) <= maxNoticeText {
		return s
	}
	s = s[:maxNoticeText]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return cmp.Or(s, "…") + "…"
}
