package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

const (
	webhookPlaces   = 16               // webhooks that are called at the same time
	webhookBatch    = 20               // notices that are sent before others have their turn
	webhookPatience = 10 * time.Second // for an answer
	maxNotices      = 1000             // that a webhook may have waiting; the oldest are dropped
	noticeAge       = 24 * time.Hour   // after which a notice that cannot be delivered is dropped
	maxReply        = 64 << 10         // bytes of an answer that are read
)

// deliver sends the notices that a webhook has waiting, in their order. After an error,
// the lease is taken again later.
func (w *Worker) deliver(ctx context.Context, l *holding) error {
	tenant, id := l.lease.Session()
	all, err := Webhooks(ctx, w.opts.Engine, tenant)
	if err != nil {
		return err
	}
	list, err := w.opts.Engine.Commands(ctx, tenant, id)
	if err != nil || len(list) == 0 {
		return err
	}
	i := slices.IndexFunc(all, func(h Webhook) bool { return h.Inbox() == id })
	if i < 0 { // it was deleted
		return w.opts.Engine.Remove(ctx, tenant, id, list[len(list)-1].Number)
	}
	if excess := len(list) - maxNotices; excess > 0 {
		w.opts.Logger.WarnContext(ctx, "a webhook has too many notices waiting: the oldest are dropped", "webhook", id, "tenant", tenant, "dropped", excess)
		if err := w.opts.Engine.Remove(ctx, tenant, id, list[excess-1].Number); err != nil {
			return err
		}
		list = list[excess:]
	}
	h, client := all[i], webhookClient(w.opts.PrivateWebhooks)
	for _, c := range list[:min(len(list), webhookBatch)] {
		if err = w.deliverOne(ctx, client, tenant, &h, c); err != nil {
			break
		}
	}
	if failed := h.noteTry(ctx, w.opts.Engine, tenant); failed != nil && ctx.Err() == nil {
		w.opts.Logger.WarnContext(ctx, "how a webhook was called cannot be noted", "webhook", h.ID, "tenant", tenant, "error", failed)
	}
	return err
}

// deliverOne sends a notice, and removes it if that was done or has lasted too long.
func (w *Worker) deliverOne(ctx context.Context, client *http.Client, tenant string, h *Webhook, c Command) error {
	var n notice
	body, err := c.notice(&n)
	if err == nil {
		err = h.call(ctx, client, c.ID, body)
	}
	if ctx.Err() == nil {
		h.tried(err, time.Now().UTC())
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case time.Since(n.Timestamp) < noticeAge:
		return err
	default:
		w.opts.Logger.WarnContext(ctx, "a notice is dropped: it could not be delivered in a day", "webhook", h.ID, "tenant", tenant, "notice", c.ID, "error", err)
	}
	return w.opts.Engine.Remove(ctx, tenant, h.Inbox(), c.Number)
}

// tried takes what came of a call.
func (h *Webhook) tried(err error, now time.Time) {
	if h.LastTry, h.LastError = now, ""; err != nil {
		h.LastError = clip(cause(err))
		return
	}
	h.LastDelivery = now
}

// noteTry keeps how the webhook was last called, unless it is another one by now.
func (h *Webhook) noteTry(ctx context.Context, e Engine, tenant string) error {
	gone := errors.New("it was deleted")
	err := ChangeWebhooks(ctx, e, tenant, func(list []Webhook) ([]Webhook, error) {
		i := slices.IndexFunc(list, func(o Webhook) bool { return o.ID == h.ID && o.Created.Equal(h.Created) })
		if i < 0 {
			return nil, gone
		}
		list[i].LastTry, list[i].LastDelivery, list[i].LastError = h.LastTry, h.LastDelivery, h.LastError
		return list, nil
	})
	if errors.Is(err, gone) {
		return nil
	}
	return err
}

// cause says why a call failed without the addresses in the network of the service, which
// are not for a tenant.
func cause(err error) string {
	var name *net.DNSError
	var call *net.OpError
	var slow net.Error
	switch {
	case errors.Is(err, errNearby):
		return "the address is not on the internet"
	case errors.As(err, &slow) && slow.Timeout():
		return fmt.Sprintf("no answer within %s", webhookPatience)
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s cannot be looked up", name.Name)
	case errors.As(err, &call):
		return call.Op + ": " + innermost(call.Err).Error()
	}
	return err.Error()
}

// innermost returns the error that an error of the network began with.
func innermost(err error) error {
	for {
		below := errors.Unwrap(err)
		if below == nil {
			return err
		}
		err = below
	}
}

// notice reads the notice that a command for a webhook is. One that is damaged is as old
// as can be.
func (c Command) notice(n *notice) (body []byte, err error) {
	if len(c.Content) != 1 {
		return nil, errors.New("the notice is not a text")
	}
	body = []byte(c.Content[0].Text)
	return body, json.Unmarshal(body, n)
}

// call sends a notice once. The error does not have the URL, which may be a secret.
func (h Webhook) call(ctx context.Context, client *http.Client, id string, body []byte) error {
	signature, at, err := h.sign(id, body, time.Now())
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, strings.NewReader(string(body)))
	if err != nil {
		return errors.New("the URL cannot be used")
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "agent", "Webhook-Id": id, "Webhook-Timestamp": at, "Webhook-Signature": signature,
	} {
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxReply)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the webhook answered %d", res.StatusCode)
	}
	return nil
}

// sign returns the headers with the signature and its time.
func (h Webhook) sign(id string, body []byte, now time.Time) (signature, at string, err error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.Secret, secretPrefix))
	if err != nil || len(secret) == 0 {
		return "", "", errors.New("the webhook has no valid secret")
	}
	at = strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), at, nil
}

var errNearby = errors.New("not on the internet")

// webhookClient returns a client that follows no redirects, uses no proxy, and unless
// private is set connects to the internet alone, whatever a name leads to.
func webhookClient(private bool) *http.Client {
	dialer := &net.Dialer{Timeout: webhookPatience, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err == nil && !private && !sandbox.Public(to.Addr()) {
			err = fmt.Errorf("%s is %w", to.Addr(), errNearby)
		}
		return err
	}}
	return &http.Client{
		Timeout:       webhookPatience,
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
