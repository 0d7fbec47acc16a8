package langchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// The paths below the base URL.
const (
	chatPath   = "/chat/completions"
	modelsPath = "/models"
)

// maxModels bounds the list of models in bytes.
const maxModels = 8 << 20

var _ model.Lister = (*chat)(nil)

// Models implements [model.Lister] by GET /models below the base URL, with the
// key, the transport and the time limits of a request for an answer.
func (p *chat) Models(ctx context.Context) ([]string, error) {
	callCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := p.faults.ended(ctx); err != nil {
		return nil, err
	}
	r := (&http.Request{Method: http.MethodGet, URL: p.models, Header: http.Header{"Accept": {"application/json"}}}).WithContext(callCtx)
	p.setHeaders(r)
	x := &exchange{provider: p, ctx: ctx, cancel: cancel}
	var names []string
	err := x.roundTrip(r, func(resp *http.Response, body *watchedBody) (err error) {
		names, err = x.receiveModels(resp, body)
		return err
	})
	return names, err
}

// receiveModels reads the list. A *brokenError is a failure to read it.
func (x *exchange) receiveModels(resp *http.Response, body *watchedBody) ([]string, error) {
	p := x.provider
	if resp.StatusCode != http.StatusOK {
		return nil, x.refused(resp, body, modelsPath)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return nil, p.faults.wrap(model.CodeInvalidResponse, fmt.Sprintf("%s answered with a web page, not with a list of models: is providers.%s.baseUrl right?", p.info.Endpoint, p.info.Name), nil)
	}
	data, err := io.ReadAll(io.LimitReader(body, maxModels+1))
	if err != nil {
		return nil, &brokenError{err}
	}
	if len(data) > maxModels {
		return nil, x.invalid(fmt.Errorf("the list of models is longer than %d MiB", maxModels>>20))
	}
	names, err := parseModels(data)
	if err != nil {
		return nil, x.invalid(err)
	}
	return names, nil
}

// parseModels reads {"data":[{"id":…},…]}. A server without models may write
// null for the list.
func parseModels(data []byte) ([]string, error) {
	var list struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("not a list of models: %w", err)
	}
	if len(list.Data) == 0 {
		return nil, errors.New(`not a list of models: it has no "data"`)
	}
	var models []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(list.Data, &models); err != nil {
		return nil, fmt.Errorf("not a list of models: %w", err)
	}
	names := make([]string, 0, len(models))
	seen := map[string]bool{}
	for _, m := range models {
		if name := clip(m.ID, 300); name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}
