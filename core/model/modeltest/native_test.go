package modeltest_test

import (
	"context"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// config returns the configuration for an endpoint.
func config(e modeltest.Endpoint) wire.Config {
	return wire.Config{BaseURL: e.URL, APIKey: e.Key, Model: e.Model, Transport: e.Transport, IdleTimeout: e.Idle, FirstByteTimeout: e.Idle}
}

// native is a provider for each of the APIs.
var native = map[modeltest.API]func(modeltest.Endpoint) (model.Provider, error){
	modeltest.ChatCompletions: func(e modeltest.Endpoint) (model.Provider, error) { return langchain.OpenAI(config(e)) },
	modeltest.Azure: func(e modeltest.Endpoint) (model.Provider, error) {
		return langchain.Azure(langchain.AzureConfig{Config: config(e), APIVersion: "2024-10-21"})
	},
	modeltest.Responses: func(e modeltest.Endpoint) (model.Provider, error) {
		return openai.New(openai.Config{Config: config(e)})
	},
	modeltest.Messages: func(e modeltest.Endpoint) (model.Provider, error) {
		return anthropic.New(anthropic.Config{Config: config(e)})
	},
	modeltest.Gemini: func(e modeltest.Endpoint) (model.Provider, error) {
		return gemini.New(gemini.Config{Config: config(e)})
	},
	modeltest.Vertex: func(e modeltest.Endpoint) (model.Provider, error) {
		cfg := config(e)
		cfg.APIKey = ""
		cfg.Token = func(context.Context) (string, error) { return e.Key, nil }
		return gemini.New(gemini.Config{Config: cfg, Vertex: true, Project: "p", Location: "europe-west4"})
	},
}

func factory(api modeltest.API) modeltest.Factory {
	return func(tb testing.TB, e modeltest.Endpoint) model.Provider {
		p, err := native[api](e)
		if err != nil {
			tb.Fatal(err)
		}
		return p
	}
}

// TestNative runs the suite for the providers with a fake server of their API. The
// others do so in their package.
func TestNative(t *testing.T) {
	for _, api := range []modeltest.API{modeltest.Azure, modeltest.Responses, modeltest.Messages, modeltest.Gemini, modeltest.Vertex} {
		t.Run(api.String(), func(t *testing.T) { modeltest.TestProvider(t, factory(api), modeltest.Over(api)) })
	}
}

// TestMutants checks that the suite fails if a provider loses a field.
func TestMutants(t *testing.T) {
	for _, api := range []modeltest.API{modeltest.ChatCompletions, modeltest.Responses, modeltest.Messages, modeltest.Gemini} {
		t.Run(api.String(), func(t *testing.T) { modeltest.CheckMutants(t, factory(api), modeltest.Over(api)) })
	}
}
