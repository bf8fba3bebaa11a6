// The Go client as a program: a command in JSON on each line of standard input, answers and what
// consumers receive as lines of JSON on standard output. README.md beside it has the words.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const lineMax = 16 << 20

type given struct {
	Body       string            `json:"body"`
	Base64     []byte            `json:"base64"`
	Tag        string            `json:"tag"`
	Keys       string            `json:"keys"`
	Delay      int               `json:"delay"`
	Shard      string            `json:"shard"`
	Properties map[string]string `json:"properties"`
}

type command struct {
	given
	ID        int     `json:"id"`
	Op        string  `json:"op"`
	Name      string  `json:"name"`
	Group     string  `json:"group"`
	Topic     string  `json:"topic"`
	Producer  string  `json:"producer"`
	How       string  `json:"how"`
	Messages  []given `json:"messages"`
	SQL       string  `json:"sql"`
	From      string  `json:"from"`
	Moment    int64   `json:"moment"`
	Broadcast bool    `json:"broadcast"`
	Raw       bool    `json:"raw"`
	Orderly   bool    `json:"orderly"`
	Failures  int32   `json:"failures"`
	Retries   *int32  `json:"retries"`
	ReplyAs   string  `json:"reply_as"`
	TimeoutMs int64   `json:"timeout_ms"`
}

type object = map[string]any

var (
	names     primitive.NamesrvAddr
	printing  sync.Mutex
	stops     sync.Map // name to func() error
	producers sync.Map // name to rocketmq.Producer
	deciders  sync.Map // name to rocketmq.TransactionProducer
)

func main() {
	names = primitive.NamesrvAddr{os.Args[1]}
	rlog.SetLogLevel("error")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		var asked command
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		go answer(asked)
	}
}

func show(line object) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func answer(asked command) {
	result, err := run(asked)
	if err != nil {
		show(object{"id": asked.ID, "error": err.Error()})
		return
	}
	show(object{"id": asked.ID, "result": result})
}

func run(asked command) (any, error) {
	switch asked.Op {
	case "producer":
		return nil, startProducer(asked)
	case "send":
		return send(asked)
	case "request":
		return request(asked)
	case "consumer":
		return nil, startConsumer(asked)
	case "stop":
		stop, found := stops.LoadAndDelete(asked.Name)
		if !found {
			return nil, fmt.Errorf("nothing is called %s", asked.Name)
		}
		return nil, stop.(func() error)()
	}
	return nil, fmt.Errorf("no such op: %s", asked.Op)
}

// -- producing -----------------------------------------------------------------------------------

// byShard sends one shard to one queue, and what has none to all queues in turn.
type byShard struct{ hash, turn producer.QueueSelector }

func (s *byShard) Select(m *primitive.Message, queues []*primitive.MessageQueue, last string) *primitive.MessageQueue {
	if m.GetShardingKey() != "" {
		return s.hash.Select(m, queues, last)
	}
	return s.turn.Select(m, queues, last)
}

func startProducer(asked command) error {
	p, err := rocketmq.NewProducer(
		producer.WithNameServer(names),
		producer.WithGroupName(asked.Group),
		producer.WithInstanceName(asked.Name),
		producer.WithQueueSelector(&byShard{producer.NewHashQueueSelector(), producer.NewRoundRobinQueueSelector()}),
	)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	producers.Store(asked.Name, p)
	stops.Store(asked.Name, p.Shutdown)
	return nil
}

func theProducer(name string) rocketmq.Producer {
	p, _ := producers.Load(name)
	return p.(rocketmq.Producer)
}

// decisions decides as the message's own properties say.
type decisions struct{}

func state(word string) primitive.LocalTransactionState {
	switch word {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnknowState
}

func (decisions) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return state(m.GetProperty("decide"))
}

func (decisions) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	show(object{"event": "check", "body": string(m.Body)})
	return state(m.GetProperty("check"))
}

// decider returns a transactional producer beside an ordinary one.
func decider(name string) (rocketmq.TransactionProducer, error) {
	if known, found := deciders.Load(name); found {
		return known.(rocketmq.TransactionProducer), nil
	}
	p, err := rocketmq.NewTransactionProducer(
		decisions{},
		producer.WithNameServer(names),
		producer.WithGroupName(name+"-deciding"),
		producer.WithInstanceName(name+"-deciding"),
	)
	if err != nil {
		return nil, err
	}
	deciders.Store(name, p)
	return p, p.Start()
}

func message(topic string, one given) *primitive.Message {
	body := []byte(one.Body)
	if one.Base64 != nil {
		body = one.Base64
	}
	m := primitive.NewMessage(topic, body)
	m.WithProperties(one.Properties)
	if one.Tag != "" {
		m.WithTag(one.Tag)
	}
	if one.Keys != "" {
		m.WithKeys([]string{one.Keys})
	}
	if one.Delay > 0 {
		m.WithDelayTimeLevel(one.Delay)
	}
	if one.Shard != "" {
		m.WithShardingKey(one.Shard)
	}
	return m
}

func told(result *primitive.SendResult) object {
	status := "SEND_OK"
	if result.Status != primitive.SendOK {
		status = fmt.Sprint("status ", int(result.Status))
	}
	return object{
		"status": status, "key": result.MsgID, "place": result.OffsetMsgID,
		"queue": result.MessageQueue.QueueId, "offset": result.QueueOffset,
	}
}

func send(asked command) (any, error) {
	if asked.How == "async" {
		return sendAsync(asked)
	}
	if asked.How == "batch" {
		batch := []*primitive.Message{}
		for _, one := range asked.Messages {
			batch = append(batch, message(asked.Topic, one))
		}
		result, err := theProducer(asked.Producer).SendSync(context.Background(), batch...)
		if err != nil {
			return nil, err
		}
		return []any{told(result)}, nil
	}
	results := []any{}
	for _, one := range asked.Messages {
		result, err := sendOne(asked, message(asked.Topic, one))
		if err != nil {
			return nil, err
		}
		if result != nil {
			results = append(results, told(result))
		}
	}
	return results, nil
}

func sendOne(asked command, m *primitive.Message) (*primitive.SendResult, error) {
	switch asked.How {
	case "oneway":
		return nil, theProducer(asked.Producer).SendOneWay(context.Background(), m)
	case "transaction":
		p, err := decider(asked.Producer)
		if err != nil {
			return nil, err
		}
		result, err := p.SendMessageInTransaction(context.Background(), m)
		if err != nil {
			return nil, err
		}
		return result.SendResult, nil
	}
	return theProducer(asked.Producer).SendSync(context.Background(), m)
}

func sendAsync(asked command) (any, error) {
	results := make([]any, len(asked.Messages))
	called := make(chan error, len(asked.Messages))
	for place, one := range asked.Messages {
		place := place // one of its own for each callback, also before Go 1.22
		put := func(_ context.Context, result *primitive.SendResult, err error) {
			if err == nil {
				results[place] = told(result)
			}
			called <- err
		}
		err := theProducer(asked.Producer).SendAsync(context.Background(), put, message(asked.Topic, one))
		if err != nil {
			return nil, err
		}
	}
	for range asked.Messages {
		select {
		case err := <-called:
			if err != nil {
				return nil, err
			}
		case <-time.After(30 * time.Second):
			return nil, fmt.Errorf("a callback has not been called")
		}
	}
	return results, nil
}

func request(asked command) (any, error) {
	limit := time.Duration(asked.TimeoutMs) * time.Millisecond
	reply, err := theProducer(asked.Producer).Request(
		context.Background(), limit, message(asked.Topic, asked.given))
	if err != nil {
		return nil, err
	}
	return string(reply.Body), nil
}

// -- consuming -----------------------------------------------------------------------------------

func startConsumer(asked command) error {
	options := []consumer.Option{
		consumer.WithNameServer(names),
		consumer.WithGroupName(asked.Group),
		consumer.WithInstance(asked.Name),
		consumer.WithConsumerOrder(asked.Orderly),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}
	switch asked.From {
	case "last":
		options = append(options, consumer.WithConsumeFromWhere(consumer.ConsumeFromLastOffset))
	case "timestamp":
		moment := time.UnixMilli(asked.Moment).Format("20060102150405")
		options = append(options, consumer.WithConsumeFromWhere(consumer.ConsumeFromTimestamp),
			consumer.WithConsumeTimestamp(moment))
	}
	if asked.Broadcast {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	if asked.Retries != nil {
		options = append(options, consumer.WithMaxReconsumeTimes(*asked.Retries))
	}
	c, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return err
	}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: asked.Tag}
	if asked.SQL != "" {
		selector = consumer.MessageSelector{Type: consumer.SQL92, Expression: asked.SQL}
	}
	listener := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		return consumed(asked, messages), nil
	}
	if err := c.Subscribe(asked.Topic, selector, listener); err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	stops.Store(asked.Name, c.Shutdown)
	return nil
}

func consumed(asked command, messages []*primitive.MessageExt) consumer.ConsumeResult {
	good := true
	for _, m := range messages {
		show(event(asked, m))
		good = good && m.ReconsumeTimes >= asked.Failures
		if asked.ReplyAs != "" {
			reply(m, theProducer(asked.ReplyAs))
		}
	}
	switch {
	case good:
		return consumer.ConsumeSuccess
	case asked.Orderly:
		return consumer.SuspendCurrentQueueAMoment
	}
	return consumer.ConsumeRetryLater
}

func reply(m *primitive.MessageExt, p rocketmq.Producer) {
	body := []byte("re: " + string(m.Body))
	made, err := consumer.CreateReplyMessage(m, nil)
	if err == nil {
		made.Body = body // 2.1.2 takes the body for properties
		_, err = p.SendSync(context.Background(), made)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reply:", err)
	}
}

func event(asked command, m *primitive.MessageExt) object {
	name, body := "body", any(string(m.Body))
	if asked.Raw {
		name, body = "base64", m.Body // bytes become Base64 in JSON
	}
	return object{
		"event": "message", "received": time.Now().UnixMilli(), "consumer": asked.Name,
		"topic": m.Topic, name: body, "tag": m.GetTags(), "keys": m.GetKeys(),
		"queue": m.Queue.QueueId, "offset": m.QueueOffset, "times": m.ReconsumeTimes,
		"born": m.BornTimestamp, "stored": m.StoreTimestamp, "key": m.MsgId,
		"properties": m.GetProperties(),
	}
}
