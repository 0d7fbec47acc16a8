package clients

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/bedrock"

	"github.com/seed-009c0928/agent/core/model/langchain"
)

// credentials returns AWS's credentials of this machine: of the environment, of
// the AWS CLI or of an instance. They are looked up once.
type credentials func() (aws.CredentialsProvider, error)

func awsCredentials() credentials {
	return sync.OnceValues(func() (aws.CredentialsProvider, error) {
		cfg, err := config.LoadDefaultConfig(context.Background())
		return cfg.Credentials, err
	})
}

func isAnthropic(name string) bool { return strings.Contains(name, "anthropic") }

// bedrockTraits differ by the maker of a model.
func bedrockTraits(name string) langchain.Traits {
	if isAnthropic(name) {
		return langchain.Traits{Streams: func(_ string, tools bool) bool { return !tools }}
	}
	return langchain.Traits{NoTools: true, NoStopReason: true, OneText: true, NoImages: !strings.Contains(name, ".nova-"), Streams: func(string, bool) bool { return false }}
}

func openBedrock(c *call) (llms.Model, error) {
	u := c.trimVersion("/openai/v1")
	region := "us-east-1"
	if m := regexp.MustCompile(`^bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.`).FindStringSubmatch(u.Hostname()); m != nil {
		region = m[1]
	}
	signer := aws.CredentialsProvider(aws.AnonymousCredentials{})
	if c.cfg.APIKey == "" {
		found, err := c.credentials()
		if err == nil {
			_, err = found.Retrieve(c.ctx)
		}
		if err != nil {
			return nil, notConfigured(c.cfg.Name, "no AWS credentials ("+c.Clean(err.Error())+"): set providers."+c.cfg.Name+".apiKey or AWS_BEARER_TOKEN_BEDROCK, or sign in with the AWS CLI")
		}
		signer = found
	}
	llm, err := bedrock.New(bedrock.WithModel(c.model), bedrock.WithClient(bedrockruntime.New(bedrockruntime.Options{
		Region: region, BaseEndpoint: aws.String(strings.TrimSuffix(u.String(), "/")), Credentials: signer, HTTPClient: c.httpClient(), Retryer: aws.NopRetryer{},
	})))
	return bedrockModel{llm}, err
}

// bedrockModel gives a tool choice the form that langchaingo's bedrock reads.
type bedrockModel struct{ llms.Model }

// GenerateContent implements [llms.Model].
func (m bedrockModel) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	return m.Model.GenerateContent(ctx, messages, append(options, func(o *llms.CallOptions) {
		if choice, ok := o.ToolChoice.(llms.ToolChoice); ok && choice.Function != nil {
			o.ToolChoice = map[string]any{"type": "function", "function": map[string]any{"name": choice.Function.Name}}
		}
	})...)
}
