package langchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

var _ model.Lister = (*chat)(nil)

// Models implements [model.Lister] by GET /models below the base URL.
func (p *chat) Models(ctx context.Context) ([]string, error) {
	var data json.RawMessage
	if err := p.GetJSON(ctx, p.URL("models"), &data); err != nil {
		return nil, err
	}
	names, err := parseModels(data)
	if err != nil {
		return nil, p.Invalid(err)
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
		if name := wire.Clip(m.ID, 300); name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}
