package model

import "github.com/seed-009c0928/agent/core/internal/quickjson"

// quickParts reads parts in the form of MarshalJSON, of the kinds that a conversation
// has most of. The general way is several times slower.
func quickParts(data []byte) (list Parts, ok bool) {
	r := quickjson.New(data)
	r.Need('[')
	list = make(Parts, 0, 1)
	for r.OK() && !r.Skip(']') {
		if len(list) > 0 {
			r.Need(',')
		}
		list = append(list, quickPart(&r))
	}
	return list, r.End()
}

func quickPart(r *quickjson.Reader) (p Part) {
	r.Open()
	switch string(r.Bytes("type")) {
	case "text":
		p = Text{r.String("text")}
	case "tool_call":
		p = ToolCall{r.String("id"), r.String("name"), r.String("args")}
	case "reasoning":
		p = Reasoning{r.String("text"), r.String("signature")}
	case "opaque":
		p = Opaque{r.String("provider"), r.String("model"), r.Raw("raw")}
	default:
		r.Fail()
	}
	r.Close()
	return p
}
