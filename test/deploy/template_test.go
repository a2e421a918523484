// Package deploy checks what no compiler sees: that template, Makefile, events and configurations fit the code and
// each other.
package deploy

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"holdfast/internal/config"
)

const root = "../.."

// node is a YAML node of a template, with CloudFormation's tags left as they are.
type node struct{ *yaml.Node }

func read(t *testing.T, file string) node {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	var n yaml.Node
	require.NoError(t, yaml.Unmarshal(raw, &n))
	return node{n.Content[0]}
}

// at walks down a path of keys; nil where there is nothing.
func (n node) at(path ...string) node {
	for _, key := range path {
		n = n.fields()[key]
	}
	return n
}

// fields are the entries of a mapping.
func (n node) fields() map[string]node {
	m := map[string]node{}
	if n.Node == nil || n.Kind != yaml.MappingNode {
		return m
	}
	for i := 0; i < len(n.Content); i += 2 {
		m[n.Content[i].Value] = node{n.Content[i+1]}
	}
	return m
}

func (n node) value() string {
	if n.Node == nil {
		return ""
	}
	return n.Value
}

func (n node) items() []node {
	if n.Node == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	var all []node
	for _, c := range n.Content {
		all = append(all, node{c})
	}
	return all
}

func (n node) values() []string {
	var all []string
	for _, item := range n.items() {
		all = append(all, item.value())
	}
	return all
}

// resources are the template's resources of one type, by logical id.
func resources(t *testing.T, kind string) map[string]node {
	t.Helper()
	found := map[string]node{}
	for id, r := range read(t, "template.yaml").at("Resources").fields() {
		if r.at("Type").value() == kind {
			found[id] = r
		}
	}
	require.NotEmpty(t, found, kind)
	return found
}

func functions(t *testing.T) map[string]node { return resources(t, "AWS::Serverless::Function") }

// A function URL that anyone may call needs two permissions, and SAM makes neither when AuthType is a parameter.
func TestFunctionURLsHaveBothPermissions(t *testing.T) {
	modes := map[string]string{"ChatFunction": "BUFFERED", "StreamFunction": "RESPONSE_STREAM"}
	for id, f := range functions(t) {
		url := f.at("Properties", "FunctionUrlConfig")
		require.Equal(t, modes[id], url.at("InvokeMode").value(), id)
		if modes[id] == "" {
			continue
		}
		require.Equal(t, "AuthType", url.at("AuthType").value(), id)
		granted := permissions(t, id)
		require.Len(t, granted, 2, id)
		require.Equal(t, "NONE", granted["lambda:InvokeFunctionUrl"].at("FunctionUrlAuthType").value(), id)
		require.Equal(t, "true", granted["lambda:InvokeFunction"].at("InvokedViaFunctionUrl").value(), id)
	}
	public := read(t, "template.yaml").at("Conditions", "PublicUrl")
	require.Equal(t, []string{"AuthType", "NONE"}, public.values())
}

// permissions are the properties of the public permissions of a function, by action.
func permissions(t *testing.T, function string) map[string]node {
	t.Helper()
	found := map[string]node{}
	for id, p := range resources(t, "AWS::Lambda::Permission") {
		properties := p.at("Properties")
		if properties.at("FunctionName").value() != function {
			continue
		}
		require.Equal(t, "PublicUrl", p.at("Condition").value(), id)
		require.Equal(t, "*", properties.at("Principal").value(), id)
		found[properties.at("Action").value()] = properties
	}
	return found
}

func TestRuntime(t *testing.T) {
	globals := read(t, "template.yaml").at("Globals", "Function")
	require.Equal(t, "provided.al2023", globals.at("Runtime").value())
	require.Equal(t, "bootstrap", globals.at("Handler").value())
	for id, f := range functions(t) {
		for _, key := range []string{"Runtime", "Handler", "CodeUri", "Architectures"} {
			require.Nil(t, f.at("Properties", key).Node, "%s has its own %s", id, key)
		}
	}
}

func TestEveryFunctionIsBuilt(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for id, f := range functions(t) {
		require.Equal(t, "makefile", f.at("Metadata", "BuildMethod").value(), id)
		name := strings.ToLower(strings.TrimSuffix(id, "Function"))
		require.Contains(t, string(raw), "\nbuild-"+id+": FUNCTION = "+name+"\n")
		require.FileExists(t, filepath.Join(root, "functions", name, "main.go"))
	}
}

// ofTheSDK are variables that no line of ours reads.
var ofTheSDK = []string{"AWS_ENDPOINT_URL_DYNAMODB"}

func TestEnvironmentIsWhatTheCodeReads(t *testing.T) {
	read := variablesRead(t, "functions", "internal")
	declared := declaredVariables(t)
	for _, name := range declared {
		if !slices.Contains(ofTheSDK, name) {
			require.Contains(t, read, name, "the template sets what no code reads")
		}
	}
	for _, name := range read {
		if strings.HasPrefix(name, "HOLDFAST_") {
			require.Contains(t, declared, name, "code reads what the template doesn't declare")
		}
	}
}

// declaredVariables are the names that the template sets, for all functions or for one.
func declaredVariables(t *testing.T) []string {
	t.Helper()
	groups := []node{read(t, "template.yaml").at("Globals", "Function", "Environment", "Variables")}
	for _, f := range functions(t) {
		groups = append(groups, f.at("Properties", "Environment", "Variables"))
	}
	var names []string
	for _, group := range groups {
		for name := range group.fields() {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

// variablesRead are the constant names that production code below the folders gives to os.Getenv and os.LookupEnv.
func variablesRead(t *testing.T, folders ...string) []string {
	t.Helper()
	var names []string
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				names = append(names, variableOf(n)...)
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	return names
}

func variableOf(n ast.Node) []string {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Getenv" && f.Sel.Name != "LookupEnv" {
		return nil
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return nil
	}
	name, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}
	return []string{name}
}

func TestTable(t *testing.T) {
	tables := resources(t, "AWS::DynamoDB::Table")
	require.Len(t, tables, 1)
	table := tables["Table"]
	require.Equal(t, "Retain", table.at("DeletionPolicy").value())
	require.Equal(t, "Retain", table.at("UpdateReplacePolicy").value())
	properties := table.at("Properties")
	require.Equal(t, "PAY_PER_REQUEST", properties.at("BillingMode").value())
	require.Equal(t, "x", properties.at("TimeToLiveSpecification", "AttributeName").value())
	require.Equal(t, "true", properties.at("PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled").value())
	for i, want := range []struct{ name, role string }{{"pk", "HASH"}, {"sk", "RANGE"}} {
		key := properties.at("KeySchema").items()[i]
		require.Equal(t, want.name, key.at("AttributeName").value())
		require.Equal(t, want.role, key.at("KeyType").value())
		attribute := properties.at("AttributeDefinitions").items()[i]
		require.Equal(t, want.name, attribute.at("AttributeName").value())
		require.Equal(t, "S", attribute.at("AttributeType").value())
	}
}

func TestFunctionsMayDoLittle(t *testing.T) {
	allowed := []string{
		"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem", "ssm:GetParameters",
		"appconfig:StartConfigurationSession", "appconfig:GetLatestConfiguration",
		"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream", "rds-db:connect",
	}
	for id, p := range resources(t, "AWS::IAM::ManagedPolicy") {
		for _, statement := range p.at("Properties", "PolicyDocument", "Statement").items() {
			if choice := statement.items(); len(choice) == 3 { // !If [condition, statement, nothing]
				require.Contains(t, read(t, "template.yaml").at("Conditions").fields(), choice[0].value())
				statement = choice[1]
			}
			actions := statement.at("Action").values()
			if len(actions) == 0 {
				actions = []string{statement.at("Action").value()}
			}
			require.Subset(t, allowed, actions, id)
			require.NotEqual(t, "*", statement.at("Resource").value(), id)
		}
	}
	for id, f := range functions(t) {
		require.Equal(t, []string{"Access"}, f.at("Properties", "Policies").values(), id)
	}
}

// Who forces breakers may do that and nothing else, and the functions don't share it.
func TestOperatorsMayDoLittle(t *testing.T) {
	roles := resources(t, "AWS::IAM::Role")
	require.Len(t, roles, 1)
	role := roles["BreakerOperator"].at("Properties")
	require.Equal(t, []string{"BreakerOperation"}, role.at("ManagedPolicyArns").values())
	require.Nil(t, role.at("Policies").Node)
	trusted := role.at("AssumeRolePolicyDocument", "Statement").items()
	require.Len(t, trusted, 1)
	require.Equal(t, "arn:${AWS::Partition}:iam::${AWS::AccountId}:root", trusted[0].at("Principal", "AWS").value(), "this account only")

	statements := resources(t, "AWS::IAM::ManagedPolicy")["BreakerOperation"].at("Properties", "PolicyDocument", "Statement").items()
	require.Len(t, statements, 1)
	require.Equal(t, []string{"dynamodb:GetItem", "dynamodb:UpdateItem"}, statements[0].at("Action").values())
	require.Equal(t, "Table.Arn", statements[0].at("Resource").value())
	keys := statements[0].at("Condition", "ForAllValues:StringLike", "dynamodb:LeadingKeys").values()
	require.Equal(t, []string{"brk#*"}, keys)

	outputs := read(t, "template.yaml").at("Outputs")
	require.Equal(t, "BreakerOperator.Arn", outputs.at("BreakerOperatorArn", "Value").value())
	require.Equal(t, "BreakerOperation", outputs.at("BreakerOperationArn", "Value").value())
}

func TestEvents(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "events", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, json.Valid(raw), file)
	}
	var env struct{ Parameters map[string]string }
	raw, err := os.ReadFile(filepath.Join(root, "events", "env.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &env))
	declared := declaredVariables(t)
	for name := range env.Parameters {
		require.Contains(t, declared, name, "sam local ignores a variable that the template doesn't declare")
	}
}

func TestConfigurations(t *testing.T) {
	below := read(t, "template.yaml").at("Parameters", "SecretsPath", "Default").value() + "/"
	key := []config.Key{{Tenant: "a", SHA256: strings.Repeat("0", 64)}}
	for _, c := range []struct {
		file string
		open bool // serves without any key
	}{{"deploy/holdfast.yaml", false}, {"test/sam/healthy.yaml", true}, {"test/sam/failing.yaml", true}} {
		t.Run(c.file, func(t *testing.T) {
			got, _, err := config.Load(context.Background(), config.Source{Location: filepath.Join(root, c.file)})
			require.NoError(t, err)
			for _, path := range got.References() {
				require.True(t, strings.HasPrefix(path, below), "the functions may not read %s", path)
			}
			require.NoError(t, got.CheckLambda(key))
			require.Equal(t, c.open, got.CheckLambda(nil) == nil)
		})
	}
}

func TestComposeListensOnLoopback(t *testing.T) {
	services := read(t, "docker-compose.yml").at("services").fields()
	require.Equal(t, "pgvector/pgvector:pg17", services["postgres"].at("image").value())
	for name, service := range services {
		require.NotNil(t, service.at("healthcheck").Node, name)
		for _, port := range service.at("ports").values() {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s: %s", name, port)
		}
	}
}
