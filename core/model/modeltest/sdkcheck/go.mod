module github.com/seed-009c0928/agent/core/model/modeltest/sdkcheck

go 1.26.0

require (
	github.com/anthropics/anthropic-sdk-go v1.84.0
	github.com/openai/openai-go/v3 v3.95.0
	github.com/seed-009c0928/agent v0.0.0
	google.golang.org/genai v1.77.0
)

replace github.com/seed-009c0928/agent => ../../../..
