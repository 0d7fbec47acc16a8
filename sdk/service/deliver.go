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
	client := webhookClient(w.opts.PrivateWebhooks)
	for _, c := range list[:min(len(list), webhookBatch)] {
		if err := w.deliverOne(ctx, client, tenant, all[i], c); err != nil {
			return err
		}
	}
	return nil
}

// deliverOne sends a notice, and removes it if that was done or has lasted too long.
func (w *Worker) deliverOne(ctx context.Context, client *http.Client, tenant string, h Webhook, c Command) error {
	var n notice
	body, err := c.notice(&n)
	if err == nil {
		err = h.call(ctx, client, c.ID, body)
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

// webhookClient returns a client that follows no redirects, uses no proxy, and unless
// private is set connects to the internet alone, whatever a name leads to.
func webhookClient(private bool) *http.Client {
	dialer := &net.Dialer{Timeout: webhookPatience, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err == nil && !private && !sandbox.Public(to.Addr()) {
			err = fmt.Errorf("%s is not on the internet", to.Addr())
		}
		return err
	}}
	return &http.Client{
		Timeout:       webhookPatience,
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
