// Package provider is the commands agent providers and agent models: configure
// and test model providers.
package provider
