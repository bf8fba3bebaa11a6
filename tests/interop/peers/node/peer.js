'use strict';

// The Node client as a program: a command in JSON on each line of standard input, answers and what
// consumers receive as lines of JSON on standard output. README.md beside it has the words.

const readline = require('readline');
const { createRequire } = require('module');

// The client is not beside this file: tests/support/peers.py installs it elsewhere.
const { Consumer, Message, Producer } = createRequire(`${process.argv[3]}/`)('ali-ons');

const names = process.argv[2];
const running = new Map();
const quiet = { info() {}, debug() {}, warn() {}, error: (...words) => console.error(...words) };
const everywhere = {
  nameSrv: names,
  logger: quiet,
  onsChannel: '',
  accessKeyId: 'none',
  accessKeySecret: 'none',
  // Only asked where name servers are found over HTTP.
  httpclient: { request() { throw new Error('no HTTP here'); } },
};

function show(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function moment(millis) {
  const at = new Date(millis);
  const two = number => String(number).padStart(2, '0');
  return `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`
    + `${two(at.getHours())}${two(at.getMinutes())}${two(at.getSeconds())}`;
}

// -- producing -----------------------------------------------------------------------------------

async function producer({ name, group }) {
  const made = new Producer({ ...everywhere, producerGroup: group, instanceName: name });
  made.on('error', error => console.error(error));
  await made.ready();
  running.set(name, made);
}

function message(topic, given) {
  const body = given.base64 === undefined ? given.body : Buffer.from(given.base64, 'base64');
  const made = new Message(topic, given.tag || '', body);
  Object.assign(made.properties, given.properties);
  if (given.keys) made.keys = [ given.keys ];
  if (given.delay) made.delayTimeLevel = given.delay;
  if (given.shard) made.shardingKey = given.shard;
  return made;
}

function told(result) {
  return {
    status: result.sendStatus === 'SEND_OK' || result.sendStatus === 0 ? 'SEND_OK' : String(result.sendStatus),
    key: result.msgId,
    queue: result.messageQueue.queueId,
    broker: result.messageQueue.brokerName,
    offset: Number(result.queueOffset),
  };
}

async function send({ producer: name, topic, how, messages }) {
  const sender = running.get(name);
  const sendOne = async given => told(await sender.send(message(topic, given)));
  if (how === 'async') return Promise.all(messages.map(sendOne));
  if (how !== 'sync') throw new Error(`this client cannot send ${how}`);
  const results = [];
  for (const given of messages) results.push(await sendOne(given));
  return results;
}

// -- consuming -----------------------------------------------------------------------------------

const FROM = {
  first: 'CONSUME_FROM_FIRST_OFFSET',
  last: 'CONSUME_FROM_LAST_OFFSET',
  timestamp: 'CONSUME_FROM_TIMESTAMP',
};

function event({ name, raw }, received) {
  const body = raw ? { base64: received.body.toString('base64') } : { body: received.body.toString() };
  return {
    event: 'message', received: Date.now(), consumer: name, topic: received.topic, ...body,
    tag: received.tags, keys: received.keys,
    queue: received.queueId, offset: Number(received.queueOffset), times: received.reconsumeTimes,
    born: Number(received.bornTimestamp), stored: Number(received.storeTimestamp),
    key: received.msgId, properties: received.properties,
  };
}

async function consumer(command) {
  const options = {
    ...everywhere,
    consumerGroup: command.group,
    instanceName: command.name,
    isBroadcast: Boolean(command.broadcast),
    consumeFromWhere: FROM[command.from || 'first'],
    rebalanceInterval: 2000,
  };
  if (command.moment) options.consumeTimestamp = moment(command.moment);
  if (command.retries !== undefined) options.maxReconsumeTimes = command.retries;
  const made = new Consumer(options);
  made.on('error', error => console.error(error));
  const wanted = command.sql ? { expressionType: 'SQL92', subString: command.sql } : command.tag;
  made.subscribe(command.topic, wanted, async received => {
    show(event(command, received));
    if (received.reconsumeTimes < (command.failures || 0)) throw new Error('it is to fail');
  });
  await made.ready();
  running.set(command.name, made);
}

async function stop({ name }) {
  const stopped = running.get(name);
  running.delete(name);
  await stopped.close();
}

const OPS = { producer, send, consumer, stop };

async function answer(command) {
  try {
    if (!OPS[command.op]) throw new Error(`no such op: ${command.op}`);
    show({ id: command.id, result: await OPS[command.op](command) });
  } catch (error) {
    show({ id: command.id, error: String(error) });
  }
}

readline.createInterface({ input: process.stdin })
  .on('line', line => answer(JSON.parse(line)))
  .on('close', () => process.exit(0));
