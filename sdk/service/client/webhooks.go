package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/seed-009c0928/agent/sdk/service"
)

// AddWebhook adds a webhook, from its URL, its Events, and its ID unless the service is to
// choose one. The answer has the secret of its signatures, which is shown only now.
func (c *Client) AddWebhook(ctx context.Context, h service.Webhook) (added service.Webhook, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/webhooks", h, &added)
	return added, err
}

// Webhooks returns the webhooks of the tenant, with how they were last called, without
// their secrets.
func (c *Client) Webhooks(ctx context.Context) ([]service.Webhook, error) {
	var body struct {
		Webhooks []service.Webhook `json:"webhooks"`
	}
	err := c.do(ctx, http.MethodGet, "/v1/webhooks", nil, &body)
	return body.Webhooks, err
}

// DeleteWebhook deletes a webhook with the notices that it has waiting; the error is an
// [fs.ErrNotExist] if there is no such one.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/webhooks/"+url.PathEscape(id), nil, nil)
}
