package clients

import (
	"context"
	"strings"

	"github.com/tmc/langchaingo/llms"
)

// echoless is a model whose service may repeat the prompt before its answer.
type echoless struct{ llms.Model }

// GenerateContent implements [llms.Model].
func (m echoless) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	resp, err := m.Model.GenerateContent(ctx, messages, options...)
	if err != nil {
		return nil, err
	}
	prompt, _ := messages[0].Parts[0].(llms.TextContent)
	for _, choice := range resp.Choices {
		choice.Content = strings.TrimSpace(strings.TrimPrefix(choice.Content, prompt.Text))
	}
	return resp, nil
}
