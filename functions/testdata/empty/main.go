// Command empty is the least that is a Lambda function: what a start costs at all.
package main

import "github.com/aws/aws-lambda-go/lambda"

func main() { lambda.Start(func() {}) }
