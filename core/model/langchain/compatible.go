package langchain

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// Quirk is a deviation of a service from the Chat Completions API.
type Quirk string

// The quirks.
const (
	// QuirkNoStreamOptions is for services that reject stream_options and send
	// the usage anyway, such as Mistral's (https://docs.mistral.ai/api).
	QuirkNoStreamOptions Quirk = "no-stream-options"
	// QuirkShortIDs is for services whose tool call IDs must have nine letters
	// and digits: Mistral's.
	QuirkShortIDs Quirk = "short-ids"
	// QuirkReplayReasoning is for services that want the reasoning of earlier
	// answers back as reasoning_content, such as DeepSeek's
	// (https://api-docs.deepseek.com/guides/thinking_mode).
	QuirkReplayReasoning Quirk = "replay-reasoning"
)

// Compatible returns a provider for a service with the Chat Completions API. A
// key is sent if there is one. The error is a *model.Error with
// CodeNotConfigured.
func Compatible(cfg wire.Config, quirks ...Quirk) (model.Provider, error) {
	d := selfHosted
	d.noStreamOptions = slices.Contains(quirks, QuirkNoStreamOptions)
	c, err := newChat(cfg, d, wire.Dialect{})
	if err != nil {
		return nil, err
	}
	c.conversation.encoding = encoding{shortIDs: slices.Contains(quirks, QuirkShortIDs), reasoning: slices.Contains(quirks, QuirkReplayReasoning)}
	return c, nil
}

// encoding is what differs between services in the form of a conversation.
type encoding struct{ shortIDs, reasoning bool }

// id returns the form of a call's ID.
func (e encoding) id(id string) string {
	if !e.shortIDs {
		return wireID(id)
	}
	const length = 9
	if len(id) == length && !slices.ContainsFunc([]byte(id), func(c byte) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:length]
}
