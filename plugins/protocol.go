package plugins

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// ProtocolSource returns the text of plugin.proto, which describes the wire.
func ProtocolSource() string { return toolproto.Source }

// ProtocolDescriptor returns what plugin.proto says as an encoded
// FileDescriptorSet, for languages that need no compiler for it.
func ProtocolDescriptor() ([]byte, error) {
	file := protodesc.ToFileDescriptorProto(toolproto.File_plugin_proto)
	return proto.MarshalOptions{Deterministic: true}.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
}

// CheckName reports why a plugin cannot have a name.
func CheckName(name string) error {
	if !namePattern().MatchString(name) || slices.Contains(reserved, name) {
		return fmt.Errorf("%q cannot be a plugin's name: use lower-case letters, digits and -, beginning with a letter, at most 40 of them; the agent's own names are taken", name)
	}
	return nil
}
