import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.commons.cli.Options;
import org.apache.commons.cli.PosixParser;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.srvutil.ServerUtil;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

/**
 * Runs mqadmin commands in this one JVM, which takes a second to start and a command some
 * milliseconds. A line of standard input has commands that may run side by side, with "|" between
 * them; a command is its arguments, each in Base64, with blanks between them. The answer is a line
 * with what each of them printed, in Base64, behind a ".", with blanks between them.
 *
 * Four commands are not mqadmin's: "+producer group", "+consumer group topic" and
 * "+send topic tag key count" have somebody online to be asked about, "+menu" lists what mqadmin
 * has. A command that its menu leaves out is given by the name of its class.
 */
public final class AdminProbe {
    /** Some commands go on for ever; what they have said by then is their answer. */
    private static final long LIMIT_MS = Long.getLong("limit.ms", 8000);
    /** Clients name themselves by the millisecond they are made in. */
    private static final long APART_MS = 20;
    private static final InheritableThreadLocal<ByteArrayOutputStream> SAID =
        new InheritableThreadLocal<>();
    private static DefaultMQProducer producer;

    public static void main(String[] unused) throws Exception {
        PrintStream answers = System.out;
        PrintStream out = new PrintStream(new Sorted(), true, "UTF-8");
        System.setOut(out);
        System.setErr(out);
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] commands = line.split("\\|");
            Thread[] workers = new Thread[commands.length];
            ByteArrayOutputStream[] said = new ByteArrayOutputStream[commands.length];
            for (int i = 0; i < commands.length; i++) {
                said[i] = new ByteArrayOutputStream();
                workers[i] = begin(words(commands[i]), said[i]);
                Thread.sleep(APART_MS);
            }
            StringBuilder answer = new StringBuilder();
            for (int i = 0; i < commands.length; i++) {
                workers[i].join(LIMIT_MS);
                if (workers[i].isAlive()) {
                    workers[i].interrupt();
                }
                byte[] text;
                synchronized (said[i]) {
                    text = said[i].toByteArray();
                }
                answer.append(i == 0 ? "." : " .").append(Base64.getEncoder().encodeToString(text));
            }
            answers.println(answer);
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static String[] words(String command) {
        String[] words = command.trim().split(" ");
        for (int i = 0; i < words.length; i++) {
            words[i] = new String(Base64.getDecoder().decode(words[i]), StandardCharsets.UTF_8);
        }
        return words;
    }

    private static Thread begin(String[] words, ByteArrayOutputStream said) {
        Thread worker = new Thread(() -> {
            SAID.set(said);
            try {
                run(words);
            } catch (Throwable error) {
                error.printStackTrace();
            }
        });
        worker.setDaemon(true);
        worker.start();
        return worker;
    }

    private static void run(String[] words) throws Exception {
        switch (words[0]) {
            case "+producer":
                producer = new DefaultMQProducer(words[1]);
                producer.setInstanceName("probe-producer");
                producer.start();
                break;
            case "+consumer":
                DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(words[1]);
                consumer.setInstanceName("probe-consumer");
                consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
                consumer.subscribe(words[2], "*");
                consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                    ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
                consumer.start();
                break;
            case "+send":
                for (int i = 0; i < Integer.parseInt(words[4]); i++) {
                    byte[] body = ("body " + i).getBytes(StandardCharsets.UTF_8);
                    System.out.println(
                        producer.send(new Message(words[1], words[2], words[3], body)));
                }
                // A producer introduces itself every 30 s, and to brokers that it knows by then.
                producer.getDefaultMQProducerImpl().getMqClientFactory()
                    .sendHeartbeatToAllBrokerWithLock();
                break;
            case "+menu":
                MQAdminStartup.main0(new String[0], null);
                break;
            default:
                if (words[0].startsWith("org.")) {
                    hidden(words);
                } else {
                    MQAdminStartup.main0(words, null);
                }
        }
    }

    private static void hidden(String[] words) throws Exception {
        SubCommand command =
            (SubCommand) Class.forName(words[0]).getDeclaredConstructor().newInstance();
        Options options =
            command.buildCommandlineOptions(ServerUtil.buildCommandlineOptions(new Options()));
        String[] rest = Arrays.copyOfRange(words, 1, words.length);
        command.execute(new PosixParser().parse(options, rest), options, null);
    }

    /** Gives what is printed to the command whose thread, or whose thread's child, prints it. */
    private static final class Sorted extends OutputStream {
        @Override
        public void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int start, int count) {
            ByteArrayOutputStream said = SAID.get();
            if (said != null) {
                synchronized (said) {
                    said.write(bytes, start, count);
                }
            }
        }
    }
}
