// Package awschain is AWS's whole chain of settings: variables, shared files, single sign-on, roles of machines.
//
// Its one idea: people's machines need it and Lambda's don't, and it is 1.9 MB large. So it is a package of its own,
// which the command imports and the functions don't.
package awschain

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// Load finds region and credentials. It reads files at most; nobody is asked until credentials are needed.
func Load(ctx context.Context) (aws.Config, error) { return config.LoadDefaultConfig(ctx) }
