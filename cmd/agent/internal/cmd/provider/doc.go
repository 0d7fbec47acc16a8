// Package provider is the commands agent providers and agent models, which
// configure and test model providers.
package provider
