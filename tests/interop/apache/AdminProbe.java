import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
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
 * Runs mqadmin commands one after the other in this JVM, which takes a second to start and a command
 * some milliseconds. A line of standard input has a command's arguments, each in Base64, with blanks
 * between them; the answer is a line with everything that the command printed, in Base64.
 *
 * Three commands are not mqadmin's: "+producer group", "+consumer group topic" and
 * "+send topic tag key count" have somebody online to be asked about. A command that the menu of
 * mqadmin leaves out is given by the name of its class.
 */
public final class AdminProbe {
    /** Some commands go on for ever; what they have said by then is their answer. */
    private static final long LIMIT_MS = Long.getLong("limit.ms", 4000);
    private static DefaultMQProducer producer;

    public static void main(String[] unused) throws Exception {
        PrintStream answers = System.out;
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(
                    Base64.getDecoder().decode(words[i]), StandardCharsets.UTF_8);
            }
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream out = new PrintStream(said, true, "UTF-8");
            System.setOut(out);
            System.setErr(out);
            final String[] command = words;
            Thread worker = new Thread(() -> {
                try {
                    run(command);
                } catch (Throwable error) {
                    error.printStackTrace(out);
                }
            });
            worker.setDaemon(true);
            worker.start();
            worker.join(LIMIT_MS);
            if (worker.isAlive()) {
                worker.interrupt();
                worker.join(LIMIT_MS);
                out.println("STOPPED");
            }
            out.flush();
            answers.println(Base64.getEncoder().encodeToString(said.toByteArray()));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
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
            default:
                if (words[0].startsWith("org.")) {
                    SubCommand command =
                        (SubCommand) Class.forName(words[0]).getDeclaredConstructor().newInstance();
                    Options options =
                        command.buildCommandlineOptions(ServerUtil.buildCommandlineOptions(new Options()));
                    String[] rest = Arrays.copyOfRange(words, 1, words.length);
                    command.execute(new PosixParser().parse(options, rest), options, null);
                } else {
                    MQAdminStartup.main0(words, null);
                }
        }
    }
}
