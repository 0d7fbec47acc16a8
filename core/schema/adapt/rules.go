package adapt

// Dialect is the form of JSON Schema that a service accepts for the arguments of
// tools.
type Dialect string

// The dialects. Tools are never sent as "strict": strict schemas cannot have
// optional arguments.
const (
	OpenAI    Dialect = "openai"    // the Responses and Chat Completions APIs of OpenAI
	Anthropic Dialect = "anthropic" // the Messages API
	Gemini    Dialect = "gemini"    // the Gemini API and Vertex AI
	Chat      Dialect = "chat"      // any other service with the Chat Completions API
	Validator Dialect = "validator" // the library that validates arguments here
)

// step changes a schema in place and notes that.
type step func(a *adapter, root *object)

// rule is a step that a service demands, and where that is known from.
type rule struct {
	step   step
	source string
}

const (
	draft2020      = "https://json-schema.org/draft/2020-12/json-schema-validation"
	openAIFormat   = "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas"
	openAIRoot     = "https://github.com/langchain-ai/langchainjs/issues/9804"
	openAIItems    = "https://github.com/digitalocean-labs/mcp-digitalocean/issues/265"
	anthropicDraft = "https://github.com/anthropics/claude-code/issues/63673"
	anthropicRoot  = "https://github.com/anthropics/claude-code/issues/27337"
	anthropicNames = "https://github.com/anthropics/claude-code/issues/79418"
	geminiSchema   = "https://ai.google.dev/api/caching#Schema"
	geminiFormats  = "https://github.com/google-gemini/gemini-cli/issues/3178"
	geminiEnums    = "https://github.com/thClaws/thClaws/issues/172"
	geminiTypes    = "https://github.com/taylorwilsdon/google_workspace_mcp/issues/1099"
	geminiObjects  = "https://github.com/mastra-ai/mastra/issues/22489"
	vertexAnyOf    = "https://github.com/anomalyco/opencode/issues/14788"
	vertexTypes    = "https://github.com/archestra-ai/archestra/pull/6220"
	vertexSchema   = "https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/Schema"
	llamaGrammar   = "https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md"
	llamaPatterns  = "https://github.com/ggml-org/llama.cpp/issues/25746"
	llamaBounds    = "https://github.com/ggml-org/llama.cpp/pull/26550"
	goRegexp       = "https://pkg.go.dev/regexp/syntax"
	protobufDepth  = "https://protobuf.dev/programming-guides/json/"
	zodNull        = "https://github.com/patlux/pi-commandcode-provider/pull/103"
	notStrict      = "arguments are validated here; 29 bytes of every tool in every request"
	otherServices  = "the strictest of the services behind gateways"
)

// tables are the rules of each dialect. They are applied in order.
var tables = map[Dialect][]rule{
	OpenAI: {
		{repair, draft2020},
		{keepRefs, openAIFormat},
		{flattenRoot, openAIRoot},
		{rootProperties, openAIRoot},
		{patterns, openAIFormat},
		{formats("date-time time date duration email hostname ipv4 ipv6 uuid"), openAIFormat},
		{enumsUpTo(250, 15_000, 1000), openAIFormat},
		{itemsOfArrays, openAIItems},
		{openObjects, notStrict},
		{depthUpTo(30), openAIFormat},
	},
	Anthropic: {
		{repair, anthropicDraft},
		{keepRefs, anthropicDraft},
		{flattenRoot, anthropicRoot},
		{patterns, anthropicDraft},
		{renameProperties, anthropicNames},
		{openObjects, notStrict},
		{enumsUpTo(1000, 50_000, 5000), otherServices},
		{depthUpTo(30), otherServices},
	},
	Gemini: {
		{repair, draft2020},
		{inlineRefs, geminiSchema},
		{flattenRoot, geminiSchema},
		{rootProperties, geminiSchema},
		{mergeNested, geminiSchema},
		{conditionals, geminiSchema},
		{tuplesAsLists, geminiSchema},
		{constAsEnum, geminiTypes},
		{optionalNulls, geminiTypes},
		{singleUnions, vertexAnyOf},
		{plainEnums, geminiEnums},
		{typeLists, geminiTypes},
		{patterns, geminiSchema},
		{keywords("type format title description enum items minItems maxItems minimum maximum minLength maxLength pattern properties required anyOf"), geminiSchema},
		{itemsOfArrays, geminiSchema},
		{types, geminiObjects},
		{anyTypes, vertexTypes},
		{formats("enum date-time float double int32 int64"), geminiFormats},
		{numericEnums, geminiEnums},
		{lonelyUnions, vertexAnyOf},
		{enumsUpTo(500, 15_000, 1000), vertexSchema},
		{knownRequired, geminiSchema},
		{depthUpTo(20), protobufDepth},
	},
	Chat: {
		{repair, draft2020},
		{inlineRefs, llamaGrammar},
		{flattenRoot, openAIRoot},
		{rootProperties, openAIRoot},
		{mergeNested, llamaGrammar},
		{conditionals, llamaGrammar},
		{tuplesAsLists, llamaGrammar},
		{constAsEnum, geminiTypes},
		{optionalNulls, geminiTypes},
		{singleUnions, zodNull},
		{plainEnums, geminiEnums},
		{typeLists, geminiTypes},
		{keywords("type format title description default enum items minItems maxItems minimum maximum properties required additionalProperties anyOf"), llamaPatterns},
		{itemsOfArrays, openAIItems},
		{types, geminiObjects},
		{anyTypes, vertexTypes},
		{formats("date-time date time uuid"), llamaGrammar},
		{boundsUpTo(100), llamaBounds},
		{enumsUpTo(250, 15_000, 1000), openAIFormat},
		{knownRequired, geminiSchema},
		{renameProperties, anthropicNames},
		{openObjects, notStrict},
		{depthUpTo(10), llamaPatterns},
	},
	Validator: {
		{repair, draft2020},
		{keepRefs, "https://pkg.go.dev/github.com/google/jsonschema-go/jsonschema#Schema.Resolve"},
		{goPatterns, goRegexp},
	},
}
